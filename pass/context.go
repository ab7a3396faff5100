package pass

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A Context is what a running method sees.
type Context struct {
	context.Context
	Model   *ir.Model
	Eval    *ir.Eval
	Workers int
	Memory  int64 // bytes that a run of a model may take; 0 for no bound
	Select  Selection
	Method  string
	Later   []Options // that follow the one that runs

	// Precheck reads every weight before it is taken, so that NaN, infinities and
	// vanishing scales are known without writing. Otherwise recipes find them while
	// they run and return *Unfit.
	Precheck bool

	// KeepIR keeps the IR version: new initializers of models below IR 4 are listed
	// among the graph inputs.
	KeepIR bool

	// Searched says that a search chose which method each weight gets, and the steps select by that.
	Searched bool

	// Source is the model as it was before the first step; nil where nobody needs it.
	Source *ir.Model
	// Open opens another model, which stays open as long as the pipeline runs; nil where that cannot be.
	Open func(path string) (*ir.Model, error)
	// DryRun says that nothing will be written: what takes long is left out.
	DryRun bool
	// Holds is told the bytes that a method will hold at once, beside what recipes do; may be nil.
	Holds func(bytes int64)
	// Trained is told after each step of training; may be nil.
	Trained   func(step, steps int, loss float64)
	Trainings []Training // what was trained, in order

	rows   []Row
	first  int                // row of this step
	seen   map[*ir.Value]bool // that have a row of this step
	params map[*ir.Value]bool // scales and the like, which the row of their quantized weight is for
	consts map[constKey]*ir.Value
}

// An Unfit error says that a weight's values rule a method out. The pipeline runs
// again with Precheck, and the weight is skipped.
type Unfit struct{ Tensor, Reason string }

func (u *Unfit) Error() string { return fmt.Sprintf("tensor %q: %s", u.Tensor, u.Reason) }

// Changed adds the row of a weight that is now stored in another way. The caller
// sets Form, After and Restore, and Notes if there is more to say.
func (c *Context) Changed(v *ir.Value, before *ir.Tensor, readers []*ir.Node, r Row) {
	r.Status = Changed
	c.add(v, before, readers, r)
}

// Skip adds the row of a weight that was left alone. For a weight that is not selected the reason is the selection.
func (c *Context) Skip(v *ir.Value, readers []*ir.Node, reason Reason) {
	if c.seen[v] {
		return
	}
	if r := c.Select.Reason(v, readers); !r.None() && IsWeight(v.Const) {
		reason = r
	}
	c.add(v, v.Const, readers, Row{Status: Skipped, Reason: reason})
}

// Note adds a row about something that is no weight's fate, such as a raised opset.
func (c *Context) Note(tensor string, reason Reason) {
	c.rows = append(c.rows, Row{Method: c.Method, Tensor: tensor, Status: Noted, Reason: reason})
}

func (c *Context) add(v *ir.Value, before *ir.Tensor, readers []*ir.Node, r Row) {
	c.seen[v] = true
	r.Method, r.Tensor, r.Scope, r.Before = c.Method, v.Name, Scope(v.Graph()), before
	if r.Consumers == nil {
		r.Consumers = Labels(readers)
	}
	r.Module = ModulePath(v, readers)
	r.Counted = IsWeight(before) && !c.params[v] && (r.Status == Changed || !c.Select.Excludes(v, readers))
	for i := c.first; i < len(c.rows); i++ {
		if old := c.rows[i]; r.Status == Changed && old.Tensor == r.Tensor && old.Scope == r.Scope && old.leftAs(before) {
			c.rows[i] = c.rows[i].then(r)
			return
		}
	}
	c.rows = append(c.rows, r)
}

// Labels names nodes as rows do: operator and node name.
func Labels(ns []*ir.Node) []string {
	labels := make([]string, len(ns))
	for i, n := range ns {
		labels[i] = strings.TrimSpace(n.Op.String() + " " + n.Name)
	}
	return labels
}

// Scope is the path of the function and subgraphs that g is or stands in; empty for
// the main graph.
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

// IsWeight reports whether t is what compression is about: floats of rank 1 or more.
func IsWeight(t *ir.Tensor) bool { return t.DType.IsFloat() && len(t.Shape) > 0 }

// Readers are the nodes that read the constant v, also inside subgraphs and behind
// the nodes that Trace looks through, each once, in use order.
func Consumers(v *ir.Value) []*ir.Node {
	var ns []*ir.Node
	for _, l := range LeafUses(v) {
		if l.Node != nil && !slices.Contains(ns, l.Node) {
			ns = append(ns, l.Node)
		}
	}
	return ns
}

// Leaves are the uses of v that are not nodes which Trace looks through, but the uses
// behind those. A use without node is a graph output.
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

// Const returns a small constant of root graph g's scope with the given payload,
// shared with earlier calls: zero points, shapes, axes.
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
