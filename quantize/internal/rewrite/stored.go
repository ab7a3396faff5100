package rewrite

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// alongSum reports whether st's scales lie along the axis that s sums over.
func (st *Stored) scalesAlongReduction(s *weights.Consumer) bool {
	return st.Axis >= 0 && s.ChannelAxis() != st.Axis
}

// A stored is a coding whose tensors are constants of the model.
type Stored struct {
	*spec.Encoding
	Graph                                 *ir.Graph // the graph that holds them
	Quantized, ScaleValue, ZeroPointValue *ir.Value // zero is nil for symmetric schemes
	transposed                            *ir.Value // the codes transposed, made on demand
	ExplicitZeroPoint                     *ir.Value // the symmetric zero points, where they are written out
}

// store adds c's tensors to g as base's name and a short suffix.
func Store(g *ir.Graph, base *ir.Value, c *spec.Encoding) *Stored {
	ts := c.Recipe().Derive()
	st := &Stored{Encoding: c, Graph: g}
	st.Quantized = g.AddConst(base.Name+"_q", ts[spec.OutQuantized])
	st.ScaleValue = g.AddConst(base.Name+"_s", ts[spec.OutScales])
	if len(ts) > spec.OutZeroPoints {
		st.ZeroPointValue = g.AddConst(base.Name+"_z", ts[spec.OutZeroPoints])
	}
	return st
}

// parts are the ledger's account of st.
func (st *Stored) Parts() []pass.Part {
	ps := []pass.Part{
		{Role: pass.Payload, Value: st.Quantized, Tensor: st.Quantized.Const},
		{Role: pass.Scales, Value: st.ScaleValue, Tensor: st.ScaleValue.Const},
	}
	if st.ZeroPointValue != nil {
		ps = append(ps, pass.Part{Role: pass.Scales, Value: st.ZeroPointValue, Tensor: st.ZeroPointValue.Const})
	}
	if st.ExplicitZeroPoint != nil {
		ps = append(ps, pass.Part{Role: pass.Scales, Value: st.ExplicitZeroPoint, Tensor: st.ExplicitZeroPoint.Const})
	}
	return ps
}
