package quantize

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// DynamicInt8 stores the constant factors of MatMul and Gemm as 8-bit codes and
// multiplies in integers; activations are quantized as they come.
var DynamicInt8 = &pass.Method{
	Name:    "dynamic-int8",
	Command: "quantize",
	Doc:     "8-bit weights of MatMul and Gemm, activations quantized at run time; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		d := &Quantizer2{Spec: QuantSpec{Symmetric: true}}
		bindScheme(fs, &d.Spec)
		fs.BoolVar(&d.Embeddings, "embeddings", false, "take tables that Gather reads, too")
		d.Data.Bind(fs, 128)
		bindBiasCorrection(fs, &d.Bias, &d.Data)
		return d.Run
	},
}

// dynamicOpset is the first one that has DynamicQuantizeLinear.
const dynamicOpset = 11

type Quantizer2 struct {
	Spec       QuantSpec
	buffers    *BufferPool
	Embeddings bool
	Bias       Correction
	Data       calibrate.Data
}

func (d *Quantizer2) Run(c *pass.Context) error {
	d.buffers = NewBufferPool()
	SkipQuantized(c)
	taken, err := d.choose(c)
	if err != nil || len(taken) == 0 {
		return err
	}
	if OpsetBelow(c.Model, dynamicOpset) {
		var no *opset.Unsupported
		err := RaiseOpset(c, dynamicOpset)
		if errors.As(err, &no) {
			for _, w := range taken {
				c.Skip(w.Base, w.Nodes(), "it needs opset 11: "+no.Error())
			}
			return nil
		}
		if err != nil {
			return err
		}
		// Raising may have replaced nodes that the sites point to.
		if taken, err = d.choose(c); err != nil {
			return err
		}
	}
	return d.rewrite(c, taken)
}

// rewrite stores the weights and replaces their sites in the order of nodes, so that
// what products share stands in front of the first.
func (d *Quantizer2) rewrite(c *pass.Context, ws []*Weight) error {
	groups, err := d.mergeEqual(c, ws)
	if err != nil {
		return err
	}
	if err := d.Bias.Apply(c, d.encodings(groups)); err != nil {
		return err
	}
	at := map[*ir.Node]*Stored{}
	by := map[*ir.Node]*Consumer{}
	for _, w := range groups {
		cd, _ := d.encoding(w.Weight)
		st := Store(w.Base.Graph(), w.Base, cd)
		for _, s := range w.Consumers {
			at[s.Node], by[s.Node] = st, s
		}
		for _, m := range w.members {
			c.Changed(m.Base, m.Base.Const, m.Nodes(), d.row(w, m, st))
		}
	}
	r := New(c)
	for _, n := range slices.Collect(c.Model.Nodes()) {
		s, st := by[n], at[n]
		switch {
		case s == nil:
		case s.Side == Lookup:
			r.Gather(s, st)
		default:
			r.MatMulInteger(s, st)
		}
	}
	return nil
}

// codings are those of all weights.
func (d *Quantizer2) encodings(gs []*group) map[*ir.Value]*Encoding {
	all := map[*ir.Value]*Encoding{}
	for _, g := range gs {
		cd, _ := d.encoding(g.Weight)
		for _, m := range g.members {
			all[m.Base] = cd
		}
	}
	return all
}

// A group is weights of equal content: they are stored once.
type group struct {
	*Weight
	members []*Weight
}

func (d *Quantizer2) mergeEqual(c *pass.Context, ws []*Weight) ([]*group, error) {
	bases := make([]*ir.Value, len(ws))
	for i, w := range ws {
		bases[i] = w.Base
	}
	first, err := c.Duplicates(bases)
	if err != nil {
		return nil, err
	}
	var groups []*group
	by := map[*ir.Value]*group{}
	for _, w := range ws {
		if g := by[first[w.Base]]; g != nil {
			both := &Weight{Base: g.Base, Consumers: slices.Concat(g.Consumers, w.Consumers)}
			if _, reason := d.encoding(both); reason == "" {
				g.Weight, g.members = both, append(g.members, w)
				continue
			}
		}
		g := &group{Weight: w, members: []*Weight{w}}
		if by[w.Base] == nil {
			by[w.Base] = g
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// row is the ledger's line for m, one of the weights that st stands for.
func (d *Quantizer2) row(g *group, m *Weight, st *Stored) pass.Row {
	r := pass.Row{Form: pass.MatMulInteger, After: st.Parts(), Restore: st.Restore}
	if m.Consumers[0].Side == Lookup {
		r.Form = pass.GatherCodes
	}
	if m.Base != g.Base {
		r.SharedWith = g.Base.Name
	}
	var notes []string
	if st.Spec.Symmetric != d.Spec.Symmetric {
		notes = append(notes, "symmetric, as zero points have no place in one of its products")
	}
	if st.Spec.Unsigned != d.Spec.Unsigned {
		notes = append(notes, "uint8, as it stands on the left of a product, or several products read it")
	}
	if why := RemoveFromInputs(m.Base); why != "" {
		notes = append(notes, why)
	}
	r.Reason = strings.Join(notes, "; ")
	return r
}

// below reports whether m, or a function of it that uses the default domain, imports an
// opset lower than v.
func OpsetBelow(m *ir.Model, v int64) bool {
	if m.Opset("") < v {
		return true
	}
	for _, f := range m.Functions {
		if o := f.Body.Opset(""); o > 0 && o < v {
			return true
		}
	}
	return false
}

// raise brings the model to an opset that a form needs, and says so.
func RaiseOpset(c *pass.Context, to int64) error {
	from := c.Model.Opset("")
	if err := opset.Raise(c, c.Eval, c.Model, to); err != nil {
		return err
	}
	c.Note("", fmt.Sprintf("opset raised from %d to %d", from, to))
	return nil
}

// choose decides which weights are taken; the others get their rows.
func (d *Quantizer2) choose(c *pass.Context) ([]*Weight, error) {
	var taken []*Weight
	all := Find(c, d.Embeddings)
	skipOthers(c, all)
	for _, w := range all {
		d.mirror(w)
		if reason := d.refuse(c, w); reason != "" {
			c.Skip(w.Base, w.Nodes(), reason)
			continue
		}
		taken = append(taken, w)
	}
	return Precheck(c, taken, func(w *Weight) (*ir.Value, *Encoding) {
		cd, _ := d.encoding(w)
		return w.Base, cd
	})
}

// mirror turns left-hand sites around where the weight is asymmetric, and where the
// other factor is a vector: ONNX Runtime fuses a bias as if it ran along B's columns.
func (d *Quantizer2) mirror(w *Weight) {
	for _, s := range w.Consumers {
		if s.Side != Left || len(s.Shape) != 2 {
			continue
		}
		rank, ok := opset.Rank(s.Activation())
		if ok && rank == 1 || !d.Spec.Symmetric && !d.Spec.PerTensor {
			s.Mirror()
		}
	}
}

// refuse gives the reason why w is left alone, or "".
func (d *Quantizer2) refuse(c *pass.Context, w *Weight) string {
	if r := c.Select.Excludes(w.Base, w.Nodes()); r != "" {
		return r
	}
	if w.Base.Ambiguous {
		return "its name is produced twice"
	}
	if w.OtherConsumer != "" {
		return fmt.Sprintf("%s reads it too: the float weight would have to stay", w.OtherConsumer)
	}
	if t := w.Unsupported(); t != "" {
		return t
	}
	for _, s := range w.Consumers {
		if r := s.ResolveActivationRank(); r != "" {
			return r
		}
	}
	cd, reason := d.encoding(w)
	if reason != "" {
		return reason
	}
	if before, after := w.Base.Const.Bytes(), cd.Bytes()+GraphBytes(IntegerProductBytes, len(w.Consumers), w.Base); after >= before {
		return fmt.Sprintf("it would grow: %d bytes now, %d with codes, scales and nodes", before, after)
	}
	return ""
}

// unknownRank refuses products whose scales can only be placed if the activation's
// rank is known.
func (s *Consumer) ResolveActivationRank() string {
	if s.Side == Lookup || s.Side == Right && len(s.Shape) <= 2 && !s.Mirrored {
		return ""
	}
	if s.Node.Op.Is("Gemm") {
		s.ActivationRank = 2
		return ""
	}
	rank, ok := opset.Rank(s.Activation())
	s.ActivationRank = rank
	switch {
	case !ok:
		return fmt.Sprintf("the rank of %s's other input is not known", s.Node.Label())
	case rank < 2 && len(s.Shape) > 2:
		return fmt.Sprintf("%s's other input is a vector", s.Node.Label())
	}
	return ""
}

func (d *Quantizer2) encoding(w *Weight) (*Encoding, string) {
	return PerChannelEncoding(w, d.Spec, d.buffers)
}

// channelCoding says how w is stored so that all its sites can read it, or why it cannot be.
func PerChannelEncoding(w *Weight, qs QuantSpec, b *BufferPool) (*Encoding, string) {
	first := w.Consumers[0]
	cd := &Encoding{Buffers: b, Weight: w.Base.Const, Shape: first.BaseShape(), Spec: qs, Transpose: true}
	axis := first.ChannelAxis()
	for _, s := range w.Consumers {
		if !slices.Equal(s.BaseShape(), cd.Shape) {
			return nil, "its readers see it in different shapes"
		}
		if len(s.Shape) > 2 && s.Side != first.Side {
			return nil, "batched matrices on both sides of products cannot share scales"
		}
		cd.Transpose = cd.Transpose && s.Transposed && s.Side == Right
		cd.Spec.Unsigned = cd.Spec.Unsigned || s.RequiresUint8(w)
		// Zero points along a sum, or for each row on the left, have no place.
		if !qs.PerTensor && (s.ChannelAxis() != axis || s.Side == Left) {
			cd.Spec.Symmetric = true
		}
	}
	cd.Axis = axis
	placeScales(cd, qs.PerTensor, w)
	return cd, ""
}

// wantsUint8 reports whether int8 codes would fail s in ONNX Runtime: on the left its
// fused node has no kernel for them; and codes that several products read, or one in
// another scope, cannot be converted for CPUs without VNNI, so that products saturate
// or the model does not load.
func (s *Consumer) RequiresUint8(w *Weight) bool {
	if s.Side == Lookup {
		return false
	}
	products := 0
	for _, o := range w.Consumers {
		if o.Side != Lookup {
			products++
		}
	}
	return s.Side == Left || products > 1 || s.Node.Graph() != w.Base.Graph()
}

// placeScales sets the grid and the shape of the scales, which lets them multiply what the
// first site's product keeps.
func placeScales(c *Encoding, perTensor bool, w *Weight) {
	rank := len(c.Shape)
	n := (ir.Spec{Shape: c.Shape}).Elems()
	switch {
	case perTensor || c.Axis < 0:
		c.Layout, c.Axis = PerTensorLayout(n), -1
	case rank > 2 && c.Axis == rank-1: // a column of each matrix
		c.Layout = PerColumnLayout(n/(c.Shape[rank-2]*c.Shape[rank-1]), c.Shape[rank-2], c.Shape[rank-1])
		c.ScaleShape = append(slices.Clone(c.Shape[:rank-2]), 1, c.Shape[rank-1])
	case rank > 2 && c.Axis == rank-2: // a row of each matrix
		c.Layout = PerRowLayout(n/c.Shape[rank-1], c.Shape[rank-1])
		c.ScaleShape = append(slices.Clone(c.Shape[:rank-1]), 1)
	default:
		c.Layout = PerAxisLayout(c.Shape, c.Axis)
		c.ScaleShape = []int64{c.Shape[c.Axis]}
		if c.Axis == 0 && slices.ContainsFunc(w.Consumers, func(s *Consumer) bool { return s.Side != Right }) {
			for range rank - 1 {
				c.ScaleShape = append(c.ScaleShape, 1)
			}
		}
	}
}
