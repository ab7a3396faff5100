package rewrite

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// A Stored is a quantized weight whose tensors are constants of the model.
type Stored interface {
	// Parts are the constants, for the ledger.
	Parts() []pass.Part
	// Restore is the float weight, dequantized from its parts.
	Restore(parts []*ir.Tensor) *ir.Tensor
	// Bound is what the parts must hold.
	Bound() *pass.Bound

	castMul(r *Rewriter) *ir.Value
	gather(r *Rewriter, s *weights.Consumer)
	dequantize(r *Rewriter, transposed bool) *ir.Value
}

// Store adds e's tensors to g as constants with base's name and a suffix.
func Store(g *ir.Graph, base *ir.Value, e spec.Encoding) Stored {
	if b, ok := e.(*spec.Blockwise); ok {
		return &Blockwise{Blockwise: b, constants: newConstants(g, base, b)}
	}
	return StorePerChannel(g, base, e.(*spec.PerChannel))
}

// A constants is the stored tensors of a weight in a graph.
type constants struct {
	Graph                                 *ir.Graph
	Quantized, ScaleValue, ZeroPointValue *ir.Value // ZeroPointValue is nil for symmetric schemes
}

func newConstants(g *ir.Graph, base *ir.Value, e spec.Encoding) constants {
	ts := e.Recipe().Derive()
	c := constants{Graph: g, Quantized: g.AddConst(base.Name+"_q", ts[spec.OutQuantized]),
		ScaleValue: g.AddConst(base.Name+"_s", ts[spec.OutScales])}
	if len(ts) > spec.OutZeroPoints {
		c.ZeroPointValue = g.AddConst(base.Name+"_z", ts[spec.OutZeroPoints])
	}
	return c
}

// Parts are the constants, for the ledger.
func (c *constants) Parts() []pass.Part {
	ps := []pass.Part{
		{Role: pass.Payload, Value: c.Quantized, Tensor: c.Quantized.Const},
		{Role: pass.Scales, Value: c.ScaleValue, Tensor: c.ScaleValue.Const},
	}
	if c.ZeroPointValue != nil {
		ps = append(ps, pass.Part{Role: pass.Scales, Value: c.ZeroPointValue, Tensor: c.ZeroPointValue.Const})
	}
	return ps
}

// PerChannel is a stored weight with one scale for each channel, or for the whole tensor.
type PerChannel struct {
	*spec.PerChannel
	constants
	transposed        *ir.Value // the quantized weight transposed, inserted on demand
	ExplicitZeroPoint *ir.Value // the zero points of a symmetric scheme, where they are written out
}

// StorePerChannel is Store for that encoding.
func StorePerChannel(g *ir.Graph, base *ir.Value, e *spec.PerChannel) *PerChannel {
	return &PerChannel{PerChannel: e, constants: newConstants(g, base, e)}
}

// Parts are the constants, for the ledger.
func (st *PerChannel) Parts() []pass.Part {
	ps := st.constants.Parts()
	if st.ExplicitZeroPoint != nil {
		ps = append(ps, pass.Part{Role: pass.Scales, Value: st.ExplicitZeroPoint, Tensor: st.ExplicitZeroPoint.Const})
	}
	return ps
}

// scalesAlongReduction reports whether the scales are along the reduction axis of s.
func (st *PerChannel) scalesAlongReduction(s *weights.Consumer) bool {
	return st.Axis >= 0 && s.ChannelAxis() != st.Axis
}

// Blockwise is a stored weight whose blocks share scales.
type Blockwise struct {
	*spec.Blockwise
	constants
	wide   *widened    // inserted on demand
	lookup bool        // lookups read the constants as they are
	tables []*ir.Value // of values of bytes
}

// Parts are the constants, for the ledger.
func (st *Blockwise) Parts() []pass.Part {
	ps := st.constants.Parts()
	for i := range ps {
		if st.wide == nil || st.wide.bytes[ps[i].Value] == 0 {
			continue
		}
		ps[i].Folded = st.wide.bytes[ps[i].Value]
		// Lookups keep the bytes as they are beside what the product's are folded into.
		if st.lookup {
			ps[i].Folded += ps[i].Bytes()
		}
	}
	for _, v := range st.tables {
		ps = append(ps, pass.Part{Role: pass.Scales, Value: v, Tensor: v.Const, Folded: -1})
	}
	return ps
}

// table is a constant with what each byte stands for. Weights of a graph share it.
func (st *Blockwise) table(r *Rewriter, values []byte) *ir.Value {
	v := r.step.Const(st.Graph, ir.Uint8, []int64{256, int64(len(values)) / 256}, values)
	if !slices.Contains(st.tables, v) {
		st.tables = append(st.tables, v)
	}
	return v
}
