package quantize

import (
	"bytes"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An emitter puts QuantizeLinear and DequantizeLinear around what computes on codes.
type emitter struct {
	*static
	*flow
	g       *ir.Graph
	known   map[string]calibrate.Summary
	roots   map[*ir.Value]string    // names of values whose ranges stand for others', before anything changes
	weights map[*ir.Value]*ir.Value // dequantized, by weight
	stored  map[*ir.Value]*stored   // by weight
	biases  map[*ir.Value]bool      // that have their rows
}

// emit rewrites the graph.
func (s *static) emit(c *pass.Context, f *flow, known map[string]calibrate.Summary) error {
	e := &emitter{static: s, flow: f, g: c.Model.Graph, known: known, roots: map[*ir.Value]string{}, weights: map[*ir.Value]*ir.Value{}, stored: map[*ir.Value]*stored{}, biases: map[*ir.Value]bool{}}
	values := f.values()
	for _, v := range values {
		e.roots[v] = f.root(v).Name
	}
	var changes []func()
	for _, v := range values {
		changes = append(changes, e.value(v))
	}
	var layers []*layer
	for n := range e.g.Nodes() {
		if l := f.layers[n]; l != nil {
			layers = append(layers, l)
		}
	}
	for _, l := range layers {
		e.layer(l, e.scaleOf(l.node.Input(0)), e.known[l.node.Input(0).Name].Means)
	}
	for _, change := range changes {
		change()
	}
	return nil
}

// scaleOf is that of v's codes.
func (e *emitter) scaleOf(v *ir.Value) float32 {
	scale, _, _ := e.codes.fit(e.known[e.roots[v]].Range)
	return scale
}

// value looks at what reads and makes v, and returns what puts its codes in between.
func (e *emitter) value(v *ir.Value) func() {
	scale, zero, _ := e.codes.fit(e.known[e.roots[v]].Range)
	in := []*ir.Value{e.c.Const(e.g, ir.Float, nil, ir.Floats(scale)), e.c.Const(e.g, e.codes.dtype, nil, e.codes.payload(zero))}
	maker, exact := e.maker(v), e.exact(v)
	var readers []ir.Use
	for _, u := range v.Uses() {
		if e.coded(u) {
			readers = append(readers, u)
		}
	}
	if maker != nil && v.Producer() != maker {
		return func() { e.instead(v.Producer(), in) }
	}
	return func() {
		d, q := e.pair(v, in)
		if exact {
			for _, u := range readers {
				u.Node.SetInput(u.Index, d.Outputs[0])
			}
			q.SetInput(0, v)
			return
		}
		v.ReplaceUses(d.Outputs[0])
		q.SetInput(0, v)
	}
}

// instead puts codes in the place of the activation a, whose work their ends do.
func (e *emitter) instead(a *ir.Node, scale []*ir.Value) {
	pre := a.Input(0)
	d, q := e.pair(pre, scale)
	bounds := slices.Clone(a.Inputs()[1:])
	a.Become(d.Outputs[0])
	q.SetInput(0, pre)
	for _, b := range bounds {
		if b != nil {
			b.Drop()
		}
	}
}

// pair inserts both nodes behind what makes v; the first one does not read it yet.
func (e *emitter) pair(v *ir.Value, scale []*ir.Value) (d, q *ir.Node) {
	at := e.g.First()
	if n := v.Producer(); n != nil {
		at = n.Next()
	}
	codes := e.g.Insert(at, "QuantizeLinear", append([]*ir.Value{nil}, scale...))
	out := e.g.Insert(at, "DequantizeLinear", append([]*ir.Value{codes}, scale...))
	return out.Producer(), codes.Producer()
}

// payload is a code as the bytes of a constant.
func (r *codeRange) payload(code int64) []byte {
	if r.wide() {
		return kernel.Bytes([]uint16{uint16(code)})
	}
	return []byte{byte(code)}
}

// layer gives l its weight and bias as codes; its activation comes in codes of that scale.
func (e *emitter) layer(l *layer, scale float32, means []float64) {
	n, old := l.node, l.node.Input(1)
	n.SetInput(1, e.weight(l))
	old.Drop()
	if n.Op.Is("Gemm") {
		n.RemoveAttr("transB")
	}
	if l.bias == nil {
		return
	}
	// ONNX Runtime quantizes float biases of Conv itself, of Gemm only in front of QuantizeLinear.
	b := &bias{cd: l.cd, b: l.bias.Const, weight: e.stored[l.weight], group: max(1, n.Int("group", 1)), activation: scale, float: l.float || e.floatBias && l.site == nil}
	if !e.uncorrected {
		b.means = means
	}
	if !b.float || b.means != nil {
		e.bias(l, b)
	}
}

// weight is l's weight behind DequantizeLinear, in front of the first layer that reads it.
func (e *emitter) weight(l *layer) *ir.Value {
	if d := e.weights[l.weight]; d != nil {
		return d
	}
	before, readers := l.weight.Const, pass.Readers(l.weight)
	st := store(e.g, l.weight, l.cd)
	if l.float {
		e.weights[l.weight], e.stored[l.weight] = newRewriter(e.c).castMul(st), st
		e.c.Changed(l.weight, before, readers, e.row(l, st))
		return e.weights[l.weight]
	}
	in := []*ir.Value{st.codes, st.scale}
	// Without zero points ONNX Runtime runs Gemm in float, and fails to turn codes of MatMul into uint8.
	if st.zero != nil {
		in = append(in, st.zero)
	} else if st.s.zero() != 0 || l.site != nil {
		n := int(st.g.scales())
		st.stated = e.g.AddConst("z", &ir.Tensor{Spec: ir.Spec{DType: st.s.dtype(), Shape: st.scales}, Source: ir.Mem(bytes.Repeat([]byte{byte(st.s.zero())}, n))})
		in = append(in, st.stated)
	}
	var attrs []*ir.Attr
	if st.axis >= 0 {
		axis := int64(0)
		if l.site != nil {
			axis = 1 // codes of products are stored as they multiply
		}
		attrs = append(attrs, ir.IntAttr("axis", axis))
	}
	d := e.g.Insert(l.node, "DequantizeLinear", in, attrs...)
	e.weights[l.weight], e.stored[l.weight] = d, st
	e.c.Changed(l.weight, before, readers, e.row(l, st))
	return d
}
