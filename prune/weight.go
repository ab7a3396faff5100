package prune

import (
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A role is an input that holds weights, and how the operator sees them.
type role struct {
	input  int
	layout func(*ir.Node, *pass.Operand) (layout, string)
}

// roles are the operators whose weights are taken. Biases, and the scales and shifts of
// normalizations, are none: they are few, and what is pruned is a product's matrix.
var roles = map[string][]role{
	"MatMul":        {{0, left}, {1, right}},
	"Gemm":          {{0, left}, {1, right}},
	"Conv":          {{1, conv}},
	"ConvTranspose": {{1, convTranspose}},
	"LSTM":          {{1, rows}, {2, rows}},
	"GRU":           {{1, rows}, {2, rows}},
	"RNN":           {{1, rows}, {2, rows}},
	"Gather":        {{0, rows}},
}

// codes are the operators that read weights which are quantized already, and where.
var codes = map[string][]int{
	"DequantizeLinear": {0},
	"MatMulInteger":    {0, 1},
	"ConvInteger":      {1},
	"QLinearMatMul":    {0, 3},
	"QLinearConv":      {3},
}

// A weight is a constant that one or more operators read as their weight.
type weight struct {
	v       *ir.Value
	before  *ir.Tensor
	readers []*ir.Node // the operators themselves, behind Transpose, Cast and the like
	layouts []layout   // one for each reader
	trouble string     // why some layout is not known; elementwise methods need none
	table   *ir.Node   // a Gather among the readers
}

// weights returns the selected weights in file order. Every other constant that such an
// operator reads gets its ledger row here.
func weights(c *pass.Context, embeddings bool) []*weight {
	found := find(c)
	var taken []*weight
	for _, v := range c.Weights() {
		w := found[v]
		if w == nil {
			continue
		}
		if why := w.refuse(c, embeddings); why != "" {
			c.Skip(v, w.readers, why)
			continue
		}
		taken = append(taken, w)
	}
	skipOthers(c, found)
	return taken
}

// find looks through the chains before each operator's weights.
func find(c *pass.Context) map[*ir.Value]*weight {
	found := map[*ir.Value]*weight{}
	for n := range c.Model.Nodes() {
		if !ir.DefaultDomain(n.Op.Domain) {
			continue
		}
		for _, r := range roles[n.Op.Type] {
			o := c.Trace(n.Input(r.input))
			if o == nil || n.Op.Type == "Gather" && len(o.Shape) < 2 { // a vector is no embedding
				continue
			}
			w := found[o.Base]
			if w == nil {
				w = &weight{v: o.Base, before: o.Base.Const}
				found[o.Base] = w
			}
			w.readAs(n, o, r)
		}
	}
	return found
}

func (w *weight) readAs(n *ir.Node, o *pass.Operand, r role) {
	if !slices.Contains(w.readers, n) {
		w.readers = append(w.readers, n)
	}
	if n.Op.Type == "Gather" {
		w.table = n
	}
	if o.Trouble != "" {
		w.trouble = o.Trouble
		return
	}
	l, why := r.layout(n, o)
	if why != "" {
		w.trouble = why
		return
	}
	w.layouts = append(w.layouts, l)
}

// refuse gives the reason why w is not taken, or "".
func (w *weight) refuse(c *pass.Context, embeddings bool) string {
	if why := c.Select.Excludes(w.v, w.readers); why != "" {
		return why
	}
	switch {
	case w.before.Elems() == 0:
		return "it has no elements"
	case w.table != nil && !embeddings && len(w.readers) == 1:
		return "an embedding: --embeddings takes it"
	case w.table != nil && !embeddings:
		return fmt.Sprintf("also the embedding of %s: --embeddings takes it", w.table.Label())
	case storedSmaller(w.before):
		return "stored sparse: a pruned copy would be stored dense, which is larger"
	}
	return ""
}

// storedSmaller reports a payload that is expanded from fewer bytes when it is read.
func storedSmaller(t *ir.Tensor) bool {
	o, ok := t.Source.(ir.Output)
	if !ok {
		return false
	}
	held := int64(0)
	for _, in := range o.Of.In {
		held += in.Bytes()
	}
	return held < t.Bytes()
}

// skipOthers adds the rows of codes and of inputs beside the weights.
func skipOthers(c *pass.Context, found map[*ir.Value]*weight) {
	for n := range c.Model.Nodes() {
		if !ir.DefaultDomain(n.Op.Domain) {
			continue
		}
		for _, i := range codes[n.Op.Type] {
			skipCodes(c, n, n.Input(i))
		}
		for _, v := range n.Inputs() {
			if roles[n.Op.Type] != nil && v != nil && v.Const != nil && pass.IsWeight(v.Const) && found[v] == nil {
				skipBeside(c, n, v)
			}
		}
	}
}

func skipCodes(c *pass.Context, n *ir.Node, v *ir.Value) {
	if v != nil && v.Const != nil && !v.Const.DType.IsFloat() {
		c.Skip(v, []*ir.Node{n}, fmt.Sprintf("quantized already, to %s: prune before quantizing", v.Const.DType))
	}
}

func skipBeside(c *pass.Context, n *ir.Node, v *ir.Value) {
	readers := pass.Readers(v)
	why := c.Select.Excludes(v, readers)
	if why == "" {
		why = fmt.Sprintf("no weight of %s but its bias or another input beside it", n.Op)
	}
	c.Skip(v, readers, why)
}

// agreed is the value that what gives for every layout of w, or the reason why there is
// none.
func agreed[T comparable](w *weight, what func(layout) T) (got T, why string) {
	if w.trouble != "" {
		return got, w.trouble
	}
	got = what(w.layouts[0])
	for _, l := range w.layouts[1:] {
		if what(l) != got {
			return got, "its readers see its axes in different ways"
		}
	}
	return got, ""
}

// replace swaps w's payload for a view of it and adds the row. Chains of views cost no
// intermediate copy.
func (w *weight) replace(c *pass.Context, reason string, view func(in io.ReaderAt) io.ReaderAt) {
	w.swap(c, reason, &ir.Recipe{
		View: func(in []io.ReaderAt) io.ReaderAt { return view(in[0]) },
	})
}

// swap is replace for any recipe of one input and one output.
func (w *weight) swap(c *pass.Context, reason string, r *ir.Recipe) {
	r.Name, r.In, r.Out = c.Method, []*ir.Tensor{w.before}, []ir.Spec{w.before.Spec}
	after := r.Derive()[0]
	w.v.SetConst(after)
	c.Changed(w.v, w.before, w.readers, pass.Row{
		Form:    pass.InPlace,
		Reason:  reason,
		After:   []pass.Part{{Role: pass.Payload, Value: w.v, Tensor: after}},
		Restore: func(parts []*ir.Tensor) *ir.Tensor { return parts[0] },
	})
}

// skip adds the row of a weight that is left alone after all.
func (w *weight) skip(c *pass.Context, reason string) { c.Skip(w.v, w.readers, reason) }
