package grad

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Options are the options of New.
type Options struct {
	Inputs map[string]ir.Spec // types of the model's inputs; a step has a fixed batch size

	// Train selects the parameters to train, of those of Trainable; nil selects all.
	Train func(name string) bool

	// BatchStatistics makes BatchNormalization normalize with batch statistics and update its running mean and
	// variance, as in training from scratch. Without it the statistics are frozen.
	BatchStatistics bool

	// Plain keeps operators as they are, without the rewrites that save memory or time, if they have a gradient.
	Plain bool

	// Bare copies the graph for inference: Backward is not supported, but any batch size of the model is.
	Bare bool

	// Change, if set, changes the copied graph, such as by adding Dropout, before types are inferred and rules are
	// applied.
	Change func(t *Tape) error

	// Append, if set, appends nodes to the canonical forward graph, in which attention is one operator: those of losses
	// on intermediate values. A bare or plain graph is canonical, too, then.
	Append func(t *Tape) error
}

// New copies the main graph of m, with inlined functions, and makes the parameters inputs. m is unchanged; tensors are
// shared with it.
func New(ctx context.Context, m *ir.Model, o Options) (*Tape, error) {
	t := &Tape{Builder: NewBuilder(), batchStatistics: o.BatchStatistics, plain: o.Plain && o.Append == nil,
		needs: map[*ir.Value]bool{}}
	t.gradients = newGradients(t.Builder)
	// Copied nodes keep the opset of the model; those of rules are in the domain newest, with the newest one.
	t.Model.Opsets = append(slices.Clone(m.Opsets), t.Model.Opsets...)
	c := &copier{tape: t, from: m, values: map[*ir.Value]*ir.Value{}, params: Trainable(m, o.Train)}
	if err := c.main(); err != nil {
		return nil, err
	}
	if o.Change != nil {
		if err := o.Change(t); err != nil {
			return nil, err
		}
	}
	if err := t.infer(ctx, o.Inputs); err != nil {
		return nil, err
	}
	if o.Bare && o.Append == nil {
		return t, nil
	}
	// One stage at a time, as patterns of the next one need the types of its results.
	for t.canonical() {
		if err := t.infer(ctx, o.Inputs); err != nil {
			return nil, err
		}
	}
	// To the canonical graph: losses on attention refer to the fused operator.
	if o.Append != nil {
		if err := o.Append(t); err != nil {
			return nil, err
		}
		if err := t.infer(ctx, o.Inputs); err != nil {
			return nil, err
		}
	}
	if o.Bare {
		t.copyBatchSizes()
		return t, nil
	}
	if err := t.applyForwardRules(); err != nil {
		return nil, err
	}
	// Last, as forward rules replace nodes.
	t.markNeeds()
	return t, nil
}

// A copier copies nodes of a model into a tape.
type copier struct {
	tape   *Tape
	from   *ir.Model
	values map[*ir.Value]*ir.Value
	params map[*ir.Value]bool
	attrs  map[string]*ir.Attr // of the inlined function call
}

func (c *copier) main() error {
	if err := c.from.VerifyCalls(); err != nil {
		return err
	}
	for _, v := range c.from.Graph.Inputs {
		// An input with an initializer is an overridable constant: it is copied like one, where it is first used.
		if v.Initializer() == nil {
			in := c.tape.Graph().AddValue(v.Name)
			in.Type = v.Type
			c.tape.Graph().Inputs = append(c.tape.Graph().Inputs, in)
			c.values[v] = in
		}
	}
	if err := c.nodes(c.from.Graph); err != nil {
		return err
	}
	for _, v := range c.from.Graph.Outputs {
		c.tape.Graph().AddOutput(c.value(v))
	}
	return nil
}

func (c *copier) nodes(g *ir.Graph) error {
	nodes, err := g.Order()
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := c.node(n); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) node(n *ir.Node) error {
	if f := n.Callee(); f != nil {
		return c.call(n, f)
	}
	for range n.Subgraphs() {
		return fmt.Errorf("%s: training of models with control flow is not supported", n.Place())
	}
	g := c.tape.Graph()
	made := g.NewNode(n.Op, c.all(n.Inputs()), c.resolve(n.Attrs)...)
	made.Name, made.Module = n.Name, n.Module
	outs := make([]*ir.Value, len(n.Outputs))
	for i, v := range n.Outputs {
		if v != nil {
			outs[i] = g.NewValue(v.Name)
			c.values[v] = outs[i]
		}
	}
	made.SetOutputs(outs...)
	g.Append(made)
	return nil
}

// call inlines the call n of f.
func (c *copier) call(n *ir.Node, f *ir.Function) error {
	inner := &copier{tape: c.tape, from: c.from, values: map[*ir.Value]*ir.Value{}, params: c.params,
		attrs: map[string]*ir.Attr{}}
	for _, a := range c.resolve(n.Attrs) {
		inner.attrs[a.Name] = a
	}
	for i, v := range f.Body.Inputs {
		// An optional input that the call leaves out is absent in the body: value must not take it for a constant.
		inner.values[v] = nil
		if i < len(n.Inputs()) {
			inner.values[v] = c.value(n.Input(i))
		}
	}
	if err := inner.nodes(f.Body); err != nil {
		return err
	}
	for i, v := range f.Body.Outputs {
		if i < len(n.Outputs) && n.Outputs[i] != nil {
			c.values[n.Outputs[i]] = inner.value(v)
		}
	}
	return nil
}

// resolve replaces references to attributes of the function call.
func (c *copier) resolve(attrs []*ir.Attr) []*ir.Attr {
	var out []*ir.Attr
	for _, a := range attrs {
		if a.Ref == "" {
			out = append(out, a)
		} else if given := c.attrs[a.Ref]; given != nil {
			named := *given
			named.Name = a.Name
			out = append(out, &named)
		}
	}
	return out
}

func (c *copier) all(vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		out[i] = c.value(v)
	}
	return out
}

// value returns the copy of v.
func (c *copier) value(v *ir.Value) *ir.Value {
	if v == nil {
		return nil
	}
	// Constants are copied where they are first used, so that unused ones are left out.
	if made, ok := c.values[v]; ok || v.Initializer() == nil {
		return made
	}
	g := c.tape.Graph()
	if !c.params[v] {
		c.values[v] = g.AddConst(v.Name, v.Initializer())
		return c.values[v]
	}
	in := g.NewValue(v.Name)
	in.Type = typeOf(v.Const.Spec)
	g.Inputs = append(g.Inputs, in)
	c.values[v] = in
	c.tape.Params = append(c.tape.Params, &Param{Name: v.Name, Tensor: v.Const, Value: in})
	return in
}

// declaredSpec returns the declared type of v, undefined if there is none.
func declaredSpec(v *ir.Value) ir.Spec {
	if v.Type == nil {
		return ir.Spec{}
	}
	s := ir.Spec{DType: v.Type.Elem}
	for _, d := range v.Type.Shape {
		s.Shape = append(s.Shape, d.N)
	}
	return s
}

func typeOf(s ir.Spec) *ir.Type {
	t := &ir.Type{Elem: s.DType, Shape: make([]ir.Dim, len(s.Shape))}
	for i, n := range s.Shape {
		t.Shape[i] = ir.Dim{N: n}
	}
	return t
}

// infer computes the types of all values.
func (t *Tape) infer(ctx context.Context, inputs map[string]ir.Spec) error {
	specs := map[string]ir.Spec{}
	for _, v := range t.Graph().Inputs {
		if s, ok := inputs[v.Name]; ok {
			v.Type = typeOf(s)
		}
		specs[v.Name] = declaredSpec(v)
	}
	known, err := inferValues(ctx, t.Model, specs)
	if err != nil {
		return err
	}
	t.types, t.elements = map[*ir.Value]ir.Spec{}, constantElements{}
	for v := range t.Model.Values() {
		if v.Const != nil {
			t.types[v] = v.Const.Spec
		} else if a := known[v.Name]; a != nil {
			t.types[v] = ir.Spec{Name: v.Name, DType: a.DType, Shape: a.Shape}
		}
		if a := known[v.Name]; op.IsKnown(a) {
			t.elements[v] = a
		}
	}
	return nil
}

// InferResults computes the types of the results of both passes, once, which StoreFloat16 requires. Clones share them.
func (t *Tape) InferResults(ctx context.Context) error {
	if t.results != nil {
		return nil
	}
	specs := map[string]ir.Spec{}
	for _, v := range t.Graph().Inputs {
		specs[v.Name] = declaredSpec(v)
	}
	known, err := inferValues(ctx, t.Model, specs)
	if err != nil {
		return err
	}
	t.results = make(map[*ir.Value]ir.Spec, len(known))
	for n := range t.Graph().Nodes() {
		for _, v := range n.Outputs {
			if v != nil && known[v.Name] != nil {
				t.results[v] = ir.Spec{DType: known[v.Name].DType, Shape: known[v.Name].Shape}
			}
		}
	}
	return nil
}

// inferValues returns the types of all values of m, with the elements of those that follow from constants and shapes.
func inferValues(ctx context.Context, m *ir.Model, inputs map[string]ir.Spec) (_ map[string]*ir.Array, err error) {
	s, err := engine.Open(ctx, m, engine.Options{PlanOnly: true, KeepAll: true, NoFusion: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.KnownValues(inputs)
}

// copyBatchSizes lets Reshape copy the size of the first axis, where that of rewrites is a constant: any batch size is
// supported again.
func (t *Tape) copyBatchSizes() {
	for n := range t.Graph().Nodes() {
		if !is(n, "", "Reshape") || n.Input(1).Const == nil {
			continue
		}
		from := t.Shape(n.Input(0))
		if shape, ok := t.elements.ints(n.Input(1)); ok && len(shape) > 0 && len(from) > 0 && shape[0] == from[0] &&
			!slices.Contains(shape, 0) {
			n.Attrs = nil // allowzero
			n.SetInput(1, t.Ints(append([]int64{0}, shape[1:]...)...))
		}
	}
}

// applyForwardRules replaces nodes by forms that store the values that their gradients need.
func (t *Tape) applyForwardRules() error {
	for n := range t.Graph().Nodes() {
		if r := lookup(n.Op); r != nil && r.Forward != nil {
			if err := r.Forward(t, n); err != nil {
				return fmt.Errorf("%s: %w", n.Place(), err)
			}
		}
	}
	return nil
}
