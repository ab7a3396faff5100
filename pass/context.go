package pass

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A Context is the model and the settings of a running method.
type Context struct {
	context.Context
	Model   *ir.Model
	Eval    *ir.Eval
	Workers int
	Memory  int64 // memory budget of a run of the model, in bytes; 0 for unlimited
	Select  Selection
	Method  string
	Later   []Options // the steps after the running one

	// Precheck reads every weight before it is quantized, so that NaN, infinities and vanishing scales are
	// found before writing. Otherwise lazy tensors find them during evaluation and return *Unfit.
	Precheck bool

	// KeepIR keeps the IR version: new initializers of models below IR 4 are listed
	// among the graph inputs.
	KeepIR bool

	// Searched reports that a search chose the method of each weight, and the selections of the steps are its result.
	Searched bool

	// Source is the model as it was before the first step; nil if no step needs it.
	Source *ir.Model
	// Open opens another model, which stays open until the pipeline ends; nil where other models are not available.
	Open func(path string) (*ir.Model, error)
	// DryRun reports that no model is written: methods skip long computations.
	DryRun bool
	// Holds is called with the maximum memory of a method in bytes, in addition to that of lazy tensors; may be nil.
	Holds func(bytes int64)
	// Trained is called after each step of training; may be nil.
	Trained   func(step, steps int, loss float64)
	Trainings []Training // results of training steps, in order

	rows   []Row
	first  int                // index of the first row of this step
	seen   map[*ir.Value]bool // values with a row of this step
	params map[*ir.Value]bool // scales and zero points, which are part of the row of their quantized weight
	consts map[constKey]*ir.Value
}

// An Unfit error reports that a method does not support a weight's values. The pipeline runs again with Precheck,
// and the weight is skipped.
type Unfit struct{ Tensor, Reason string }

func (u *Unfit) Error() string { return fmt.Sprintf("tensor %q: %s", u.Tensor, u.Reason) }

// Changed adds the row of a weight that is now stored in another form. The caller sets Form, After, Restore and
// optionally Notes.
func (c *Context) Changed(v *ir.Value, before *ir.Tensor, consumers []*ir.Node, r Row) {
	r.Status = Changed
	c.add(v, before, consumers, r)
}

// Skip adds the row of an unchanged weight. For a weight that is not selected the reason is the selection.
func (c *Context) Skip(v *ir.Value, consumers []*ir.Node, reason Reason) {
	if c.seen[v] {
		return
	}
	if r := c.Select.Reason(v, consumers); !r.None() && IsWeight(v.Const) {
		reason = r
	}
	c.add(v, v.Const, consumers, Row{Status: Skipped, Reason: reason})
}

// Note adds a row that is not about one weight, such as a raised opset.
func (c *Context) Note(tensor string, reason Reason) {
	c.rows = append(c.rows, Row{Method: c.Method, Tensor: tensor, Status: Noted, Reason: reason})
}

func (c *Context) add(v *ir.Value, before *ir.Tensor, consumers []*ir.Node, r Row) {
	c.seen[v] = true
	r.Method, r.Tensor, r.Scope, r.Before = c.Method, v.Name, Scope(v.Graph()), before
	if r.Consumers == nil {
		r.Consumers = Labels(consumers)
	}
	r.Module = ModulePath(v, consumers)
	r.Counted = IsWeight(before) && !c.params[v] && (r.Status == Changed || !c.Select.Excludes(v, consumers))
	for i := c.first; i < len(c.rows); i++ {
		if old := c.rows[i]; r.Status == Changed && old.Tensor == r.Tensor && old.Scope == r.Scope && old.leftAs(before) {
			c.rows[i] = c.rows[i].then(r)
			return
		}
	}
	c.rows = append(c.rows, r)
}

// Labels are the names of nodes in rows: operator and node name.
func Labels(ns []*ir.Node) []string {
	labels := make([]string, len(ns))
	for i, n := range ns {
		labels[i] = strings.TrimSpace(n.Op.String() + " " + n.Name)
	}
	return labels
}

// Scope is the path of functions and subgraphs down to g; empty for the main graph.
func Scope(g *ir.Graph) string {
	var path []string
	for ; g != nil; g = g.Outer {
		switch {
		case g.Owner != nil:
			path = append([]string{g.Owner.Label() + "/" + g.Name}, path...)
		case g.Function() != nil:
			path = append([]string{g.Function().ID.String()}, path...)
		}
	}
	return strings.Join(path, "/")
}

// IsWeight reports whether t has a float data type and rank 1 or more.
func IsWeight(t *ir.Tensor) bool { return t.DType.IsFloat() && len(t.Shape) > 0 }

// Consumers are the nodes that consume the constant v, also in subgraphs and through the operators that Trace follows,
// each once, in the order of uses.
func Consumers(v *ir.Value) []*ir.Node {
	var ns []*ir.Node
	for _, l := range LeafUses(v) {
		if l.Node != nil && !slices.Contains(ns, l.Node) {
			ns = append(ns, l.Node)
		}
	}
	return ns
}

// LeafUses are the uses of v, with those of its views and casts in place of the nodes that Trace follows. A use without
// node is a graph output.
func LeafUses(v *ir.Value) []ir.Use {
	var ls []ir.Use
	for _, u := range v.Uses() {
		if u.Node == nil || u.Index > 0 || chain[u.Node.Op.Type] == nil || !ir.DefaultDomain(u.Node.Op.Domain) {
			ls = append(ls, u)
			continue
		}
		ls = append(ls, LeafUses(u.Node.Outputs[0])...)
	}
	return ls
}

// Weights are the model's float constants of rank 1 or more, in file order.
func (c *Context) Weights() []*ir.Value {
	var vs []*ir.Value
	for g := range c.Model.Graphs() {
		for _, v := range g.Consts() {
			if IsWeight(v.Const) {
				vs = append(vs, v)
			}
		}
	}
	return vs
}

type constKey struct {
	g    *ir.Graph
	spec string
	data string
}

// Const returns a small constant of root graph g with the given payload, such as a zero point, a shape or axes. Calls with
// equal arguments return the same constant.
func (c *Context) Const(g *ir.Graph, dt ir.DType, shape []int64, data []byte) *ir.Value {
	spec := ir.Spec{DType: dt, Shape: shape}
	k := constKey{g, spec.String(), string(data)}
	if v := c.consts[k]; v != nil && !v.Removed() {
		return v
	}
	v := g.AddConst("c", &ir.Tensor{Spec: spec, Source: ir.Mem(data)})
	c.consts[k] = v
	return v
}
