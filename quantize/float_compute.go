package quantize

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/precision"
)

// smallConst is the size, in elements, up to which constants are read beforehand: masks, scales, small biases.
const smallConst = 1024

// A conversion makes a whole graph compute in the narrow type.
type conversion struct {
	*narrowing
	c     *pass.Context
	plan  *precision.Plan
	stays map[*ir.Node]string  // nodes that a constant keeps in float32
	fills map[*ir.Value]bool   // constants that stand for infinity
	reach *reach               // of values between nodes; nil if nobody looked
	notes map[*ir.Value]string // what is worth knowing of a constant
}

// convert makes the graph compute in the narrow type. Weights whose readers stay float32 are stored behind a Cast.
func (w *narrowing) convert(c *pass.Context) error {
	x := newConversion(w, c)
	if err := x.look(); err != nil {
		return err
	}
	if err := x.measure(); err != nil {
		return err
	}
	return x.rewrite()
}

func newConversion(w *narrowing, c *pass.Context) *conversion {
	return &conversion{narrowing: w, c: c, stays: map[*ir.Node]string{}, fills: map[*ir.Value]bool{}, notes: map[*ir.Value]string{}}
}

// rewrite changes the graph by what is known now.
func (x *conversion) rewrite() error {
	w, c := x.narrowing, x.c
	x.plan = precision.New(c.Model, precision.Options{To: w.dt, KeepIO: w.keepIO, Stays: x.staysFloat, Far: x.reach.far})
	taken, rest := x.sort()
	if len(taken) == 0 {
		return w.store(c, rest)
	}
	if w.note != "" {
		c.Note("", w.note)
	}
	x.noteGuarded()
	first, err := c.Duplicates(taken)
	if err != nil {
		return err
	}
	halves := map[*ir.Value]*half{}
	for _, v := range taken {
		if why := x.c.Select.Excludes(v, pass.Readers(v)); why != "" && pass.IsWeight(v.Const) {
			x.castDown(v, why)
			continue
		}
		if halves[first[v]] == nil {
			halves[first[v]] = x.constant(v)
		}
		x.stand(v, halves[first[v]])
	}
	x.plan.Apply(c.Model, x.narrowed)
	return w.store(c, rest)
}

// look finds the constants that keep their readers in float32.
func (x *conversion) look() error {
	for g := range x.c.Model.Graphs() {
		for _, v := range g.Consts() {
			if v.Const.DType != ir.Float {
				continue
			}
			why, err := x.wide(v)
			if err != nil {
				return err
			}
			if why == "" {
				continue
			}
			for _, u := range slices.Concat(v.Uses(), pass.Leaves(v)) {
				if u.Node != nil && x.stays[u.Node] == "" {
					x.stays[u.Node] = why
				}
			}
		}
	}
	return nil
}

// wide is why v stays float32 with what reads it, or "".
func (x *conversion) wide(v *ir.Value) (string, error) {
	sel := x.c.Select
	sel.MinSize = 0
	if r := sel.Excludes(v, pass.Readers(v)); r != "" && pass.IsWeight(v.Const) {
		return r, nil
	}
	if v.Const.Elems() > smallConst && !x.c.Precheck && !x.clamp {
		return "", nil
	}
	s, err := x.scan(x.c, v.Const)
	if err != nil {
		return "", err
	}
	x.notes[v] = x.clamped(s)
	switch {
	case s.bits >= asInfinity && s.bits <= infBits && x.isFill(v):
		x.fills[v] = true
		return "", nil
	case v.Const.Elems() <= smallConst || x.c.Precheck || x.clamp:
		if why := x.trouble(s); why != "" {
			return fmt.Sprintf("%s: %s", v.Name, why), nil
		}
	}
	return "", nil
}

// asInfinity is the bits of 1e8: constants from there on, in masks, bounds and sums, stand for infinity, and the largest number does
// as well.
const asInfinity = 0x4cbebc20

var takesFill = map[string]bool{"Add": true, "Clip": true, "Expand": true, "Max": true, "Min": true, "Mul": true, "Pad": true, "ScatterElements": true, "ScatterND": true, "Sub": true, "Where": true}

func (x *conversion) isFill(v *ir.Value) bool {
	for _, l := range pass.Leaves(v) {
		if l.Node == nil || !takesFill[l.Node.Op.Type] || !ir.DefaultDomain(l.Node.Op.Domain) {
			return false
		}
	}
	return v.Const.Elems() <= smallConst
}

func (x *conversion) staysFloat(n *ir.Node) string {
	if x.narrowing.wide.Node(n) {
		return "selected by --keep-float32"
	}
	return x.stays[n]
}

// sort splits the constants into those that some node reads in the narrow type, and the other weights.
func (x *conversion) sort() (taken, rest []*ir.Value) {
	for g := range x.c.Model.Graphs() {
		for _, v := range g.Consts() {
			switch {
			case v.Const.DType == ir.Float && !v.Ambiguous && slices.ContainsFunc(v.Uses(), x.plan.Narrow):
				taken = append(taken, v)
			case pass.IsWeight(v.Const):
				rest = append(rest, v)
			}
		}
	}
	return taken, rest
}

// noteGuarded says which nodes stay float32.
func (x *conversion) noteGuarded() {
	var order []string
	labels := map[string][]string{}
	for n := range x.c.Model.Nodes() {
		why := x.plan.Reasons[n]
		if why == "" || !x.plan.Floats(n) {
			continue
		}
		if labels[why] == nil {
			order = append(order, why)
		}
		labels[why] = append(labels[why], pass.Labels([]*ir.Node{n})...)
	}
	for _, why := range order {
		names, more := labels[why], ""
		if len(names) > 3 {
			names, more = names[:3], fmt.Sprintf(" and %d more", len(names)-3)
		}
		x.c.Note("", fmt.Sprintf("%v%s stay float32: %s", names, more, why))
	}
}

// constant stores v in the narrow type.
func (x *conversion) constant(v *ir.Value) *half {
	t := x.recipe(v.Const, x.clamp || x.fills[v], v.Const.Elems() <= smallConst).Derive()[0]
	return &half{of: v.Name, form: x.form(v), stored: v.Graph().AddConst(v.Name+"_h", t)}
}

// form tells tables from other weights.
func (x *conversion) form(v *ir.Value) pass.Form {
	for _, u := range v.Uses() {
		if u.Node == nil || !u.Node.Op.Is("Gather") || u.Index > 0 {
			return x.computed
		}
	}
	return x.looked
}

// stand gives the readers of v the narrow constant; others keep v if it is small, or read the narrow one through a Cast.
func (x *conversion) stand(v *ir.Value, h *half) {
	before, readers := v.Const, pass.Readers(v)
	keeps := v.Const.Elems() <= smallConst
	for _, u := range slices.Clone(v.Uses()) {
		switch {
		case x.plan.Narrow(u) && u.Node != nil:
			u.Node.SetInput(u.Index, h.stored)
		case u.Node == nil && u.Graph.Owner == nil:
			keeps = true // its name is part of the interface
		case x.plan.Narrow(u):
			replaceOutput(u, h.stored)
		case !keeps:
			if h.cast == nil {
				g := v.Graph()
				h.cast = g.Insert(g.First(), "Cast", []*ir.Value{h.stored}, ir.IntAttr("to", int64(ir.Float)))
			}
			u.Node.SetInput(u.Index, h.cast)
		}
	}
	if pass.IsWeight(before) {
		x.c.Changed(v, before, readers, h.row(v, x.notes[v]))
	} else {
		noInput(v)
	}
	if x.fills[v] && len(v.Uses()) > 0 {
		v.SetConst(x.bounded(v.Const))
		return
	}
	v.Drop()
}

// castDown leaves v, which is too small to be selected, as it is, with a Cast behind it.
func (x *conversion) castDown(v *ir.Value, why string) {
	g := v.Graph()
	var y *ir.Value
	for _, u := range slices.Clone(v.Uses()) {
		if !x.plan.Narrow(u) || u.Node == nil {
			continue
		}
		if y == nil {
			y = g.Insert(g.First(), "Cast", []*ir.Value{v}, ir.IntAttr("to", int64(x.dt)))
		}
		u.Node.SetInput(u.Index, y)
	}
	x.c.Skip(v, pass.Readers(v), why)
}

func replaceOutput(u ir.Use, w *ir.Value) {
	outputs := slices.Clone(u.Graph.Outputs)
	outputs[u.Index] = w
	u.Graph.SetOutputs(outputs...)
}

// bounded is a float32 constant within the narrow type's range, so that what is computed from it is not beyond.
func (x *conversion) bounded(t *ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "bound", In: []*ir.Tensor{t}, Out: []ir.Spec{t.Spec}, Work: ir.CopyBuffer}
	r.Run = func(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
		v := make([]float32, t.Elems())
		if err := pass.NewFloats(in[0], t.DType).Read(v, 0); err != nil {
			return err
		}
		x.clampTo(v)
		_, err := out[0].Write(kernel.Bytes(v))
		return err
	}
	return r.Derive()[0]
}

// narrowed is the narrow tensor of one that stands in an attribute.
func (x *conversion) narrowed(t *ir.Tensor) *ir.Tensor {
	return x.recipe(t, true, true).Derive()[0]
}
