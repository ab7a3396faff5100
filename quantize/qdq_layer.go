package quantize

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A layer is a Conv, MatMul or Gemm that multiplies an activation by a constant.
type layer struct {
	node   *ir.Node
	weight *ir.Value
	site   *site     // nil for Conv
	bias   *ir.Value // nil where there is none
	cd     *coding
	float  bool // its activations stay float
}

// layersOf finds the layers of the main graph that can compute on codes, by node. Weights that
// cannot be stored for that are left to others.
func (s *static) layersOf(c *pass.Context) map[*ir.Node]*layer {
	found := map[*ir.Node]*layer{}
	for n := range c.Model.Graph.Nodes() {
		if l := s.layer(c, n); l != nil {
			found[n] = l
		}
	}
	var refused []*ir.Node
	for n, l := range found {
		if s.refuses(c, l, found) {
			refused = append(refused, n)
		}
	}
	for _, n := range refused {
		delete(found, n)
	}
	return found
}

// layer describes n, nil if it is none.
func (s *static) layer(c *pass.Context, n *ir.Node) *layer {
	switch {
	case pass.FromCaller(n) != "":
		return nil
	case n.Op.Is("Conv"):
		return s.convolution(c, n)
	}
	for _, st := range nodeSites(c, n, false) {
		if s.left[n] || st.side != right || len(st.shape) != 2 || st.trouble != "" || st.elem != ir.Float {
			return nil
		}
		return s.product(c, st)
	}
	return nil
}

func (s *static) convolution(c *pass.Context, n *ir.Node) *layer {
	o := c.Trace(n.Input(1))
	if o == nil || o.Trouble != "" || o.Transposed || o.Elem != ir.Float || len(o.Shape) < 3 || n.Input(0) == nil || n.Input(0).Const != nil {
		return nil
	}
	l := &layer{node: n, weight: o.Base, bias: n.Input(2), float: s.left[n]}
	l.cd = &coding{buffers: s.buffers, t: o.Base.Const, shape: o.Shape, s: s.weights(), axis: 0}
	return s.scaled(l)
}

func (s *static) product(c *pass.Context, st *site) *layer {
	n := st.node
	l := &layer{node: n, weight: c.Trace(n.Input(st.use.Index)).Base, site: st}
	if n.Op.Is("Gemm") {
		l.bias = n.Input(2)
		if n.Int("transA", 0) != 0 || n.Float("alpha", 1) != 1 || n.Float("beta", 1) != 1 {
			return nil
		}
	}
	l.cd = &coding{buffers: s.buffers, t: l.weight.Const, shape: st.view(), s: s.weights(), axis: st.channelAxis(), transpose: st.transposed}
	return s.scaled(l)
}

// scaled sets the grid of l's scales. It returns nil if l's bias is not one number a channel.
func (s *static) scaled(l *layer) *layer {
	channels := l.cd.shape[l.cd.axis]
	if b := l.bias; b != nil && (b.Const == nil || b.Const.DType != ir.Float || b.Const.Elems() != channels || b.Const.Shape[len(b.Const.Shape)-1] != channels) {
		return nil
	}
	if s.scheme.perTensor {
		l.cd.g, l.cd.axis = whole(l.cd.t.Elems()), -1
		return l
	}
	l.cd.g, l.cd.scales = onAxis(l.cd.shape, l.cd.axis), []int64{channels}
	for range l.cd.shape[1:] {
		if l.float { // they multiply the weight
			l.cd.scales = append(l.cd.scales, 1)
		}
	}
	return l
}

// weights is the scheme of weights: zero points of channels have no place in QLinearConv.
func (s *static) weights() scheme {
	w := s.scheme
	w.symmetric = w.symmetric || !w.perTensor
	return w
}

// refuses reports whether l's weight is not selected, cannot be replaced, or is better left as it is.
func (s *static) refuses(c *pass.Context, l *layer, all map[*ir.Node]*layer) bool {
	w := l.weight
	if w.Ambiguous || w.Graph() != c.Model.Graph || w.Const.DType != ir.Float || c.Select.Excludes(w, pass.Readers(w)) != "" {
		return true
	}
	leaves := pass.Leaves(w)
	// For CPUs without VNNI ONNX Runtime turns int8 codes into uint8, and fails where several read them.
	l.cd.s.unsigned = l.cd.s.unsigned || len(leaves) > 1
	for _, u := range leaves {
		o := all[u.Node]
		if o == nil || o.weight != w || u.Index != 1 || !o.like(l) {
			return true
		}
	}
	return w.Const.Bytes() <= l.cd.bytes()+graphBytes(floatBytes, 1, w)
}

// like reports whether both can read the same codes.
func (l *layer) like(o *layer) bool {
	return l.float == o.float && l.cd.axis == o.cd.axis && l.cd.transpose == o.cd.transpose && slices.Equal(l.cd.shape, o.cd.shape)
}

// row is the ledger's line for l's weight.
func (s *static) row(l *layer, st *stored) pass.Row {
	r := pass.Row{Form: qdq, After: st.parts(), Restore: st.restore}
	if l.float {
		r.Form = pass.CastMul
	}
	if !s.scheme.symmetric && l.cd.s.symmetric {
		r.Reason = "symmetric, as zero points of channels have no place in integer convolutions"
	}
	if why := noInput(l.weight); why != "" {
		r.Reason = join(r.Reason, why)
	}
	return r
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return fmt.Sprintf("%s; %s", a, b)
}
