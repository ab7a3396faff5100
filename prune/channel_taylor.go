package prune

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/coupling"
)

// A taylor measures the importance of classes of channels: the expected square of the first-order change of the outputs
// when a class is removed (Molchanov et al., Importance Estimation for Neural Network Pruning, CVPR 2019,
// arXiv:1906.10771, equation 8). Samples need no labels: outputs are projected on random vectors, whose covariance is
// the identity, or the Fisher information of a classifier's scores.
type taylor struct {
	step    *pass.Step
	sources []coupling.Source // constants whose elements are multiplied by a channel, or make one
	types   string            // of the inputs of current
	current *taylorStep       // nil before the first run
	random  *rand.Rand
	sums    map[coupling.Channel]float64
}

// A taylorStep is the graph of forward and backward pass for inputs of some types.
type taylorStep struct {
	session *engine.Interpreter
	inputs  map[string]*ir.Array // weights, and random signs
	signs   []*ir.Array
	// by source: the output of the graph that has the change by each index of the source's axis; nil for none
	changes []*ir.Value
}

// newTaylor returns the measurement for the classes of groups, which adds to worth.
func newTaylor(step *pass.Step, plan *coupling.Plan, groups []*coupling.Group,
	worth map[coupling.Channel]float64) *taylor {
	return &taylor{step: step, sources: linear(plan, groups), random: rand.New(rand.NewPCG(1, 1)), sums: worth}
}

// linear are the constants whose product with a channel of groups is removed with it: those that multiply it. Where
// there are none, such as for the product of queries and keys, they are those that make it.
func linear(plan *coupling.Plan, groups []*coupling.Group) (list []coupling.Source) {
	read, ranked := map[coupling.Channel]bool{}, removableClasses(groups)
	add := func(s coupling.Source) {
		twice := func(o coupling.Source) bool { return o.Value == s.Value && o.Axis == s.Axis }
		if s.Value.Const.DType == ir.Float && s.Value.Graph() == s.Value.Graph().Model().Graph &&
			!slices.ContainsFunc(list, twice) {
			list = append(list, s)
		}
	}
	for _, s := range plan.Consumers() {
		if !slices.ContainsFunc(s.Channels, func(u coupling.Channel) bool { return ranked[u] }) {
			continue
		}
		for _, u := range s.Channels {
			read[u] = true
		}
		add(s)
	}
	for _, g := range groups {
		for _, s := range g.Sources {
			if g.Reason.None() && !slices.ContainsFunc(g.Classes, func(u coupling.Channel) bool { return read[u] }) {
				add(s)
			}
		}
	}
	return list
}

// add adds the importance for the inputs of one run.
func (t *taylor) add(ctx context.Context, in map[string]*ir.Array, specs map[string]ir.Spec) error {
	if len(t.sources) == 0 {
		return nil
	}
	if types := fmt.Sprint(specs); t.current == nil || types != t.types { // in the order of the names
		t.close()
		var err error
		if t.current, err = t.build(ctx, specs); err != nil {
			return fmt.Errorf("--importance taylor: %w", err)
		}
		t.types = types
	}
	s := t.current
	for _, a := range s.signs {
		x := ir.View[float32](a)
		for i := range x {
			// New for each run. The expected square of the projection on random signs is the squared length of the change,
			// so that one backward pass serves all outputs.
			x[i] = float32(2*t.random.IntN(2) - 1)
		}
	}
	feeds := maps.Clone(s.inputs)
	maps.Copy(feeds, in)
	out, err := s.session.Run(ctx, feeds, nil)
	if err != nil {
		return err
	}
	change := map[coupling.Channel]float64{}
	for i, v := range s.changes {
		if v == nil {
			continue
		}
		for j, x := range ir.View[float32](out[v.Name]) {
			// With their signs, before they are squared: the elements of a class are removed together.
			change[t.sources[i].Channels[j]] += float64(x)
		}
	}
	for class, x := range change {
		t.sums[class] += x * x
	}
	return nil
}

// build builds and opens the graph for inputs of these types.
func (t *taylor) build(ctx context.Context, specs map[string]ir.Spec) (*taylorStep, error) {
	names := map[string]bool{}
	for _, s := range t.sources {
		names[s.Value.Name] = true
	}
	tape, err := grad.New(ctx, t.step.Model, grad.Options{Inputs: specs, Train: func(name string) bool {
		return names[name]
	}})
	if err != nil {
		return nil, err
	}
	tape.Close()
	s := &taylorStep{inputs: map[string]*ir.Array{}, changes: make([]*ir.Value, len(t.sources))}
	if err := tape.Backward(s.seeds(tape, t.step.Model)); err != nil {
		return nil, err
	}
	var outputs []*ir.Value
	for _, p := range tape.Params {
		data, err := t.step.Eval.ReadAll(ctx, p.Tensor)
		if err != nil {
			return nil, err
		}
		s.inputs[p.Value.Name] = &ir.Array{DType: p.Tensor.DType, Shape: p.Tensor.Shape, Data: data}
		for i, v := range t.sources {
			if v.Value.Name != p.Name || p.Grad == nil {
				continue
			}
			y := tape.Op("Mul", []*ir.Value{p.Value, p.Grad})
			if !slices.Equal(v.Shape, p.Tensor.Shape) {
				y = tape.Reshape(y, v.Shape)
			}
			if axes := others(len(v.Shape), v.Axis); len(axes) > 0 {
				y = tape.Op("ReduceSum", []*ir.Value{y, tape.Ints(axes...)}, ir.IntAttr("keepdims", 0))
			}
			s.changes[i] = y
			outputs = append(outputs, y)
		}
	}
	tape.Graph().SetOutputs(outputs...)
	if s.session, err = engine.Open(ctx, tape.Model,
		engine.Options{Workers: t.step.Env.Workers, Limits: t.step.Env.Limits}); err != nil {
		return nil, err
	}
	return s, nil
}

// others are the axes of a tensor but one.
func others(rank, axis int) (list []int64) {
	for i := range rank {
		if i != axis {
			list = append(list, int64(i))
		}
	}
	return list
}

// seeds adds the gradients of the outputs.
func (s *taylorStep) seeds(tape *grad.Tape, m *ir.Model) map[*ir.Value]*ir.Value {
	all := map[*ir.Value]*ir.Value{}
	caches := dataset.Caches(m.Graph)
	for _, y := range m.Graph.Outputs {
		n, v := y.Producer(), tape.Value(y.Name)
		if slices.ContainsFunc(caches, func(p dataset.Pair) bool { return p.Output == y.Name }) {
			continue // they have an effect on later runs only
		}
		if n != nil && operator.Of(n).Distribution && tape.Value(n.Input(0).Name) != nil &&
			len(tape.Shape(tape.Value(n.Input(0).Name))) == 2 {
			v = tape.Value(n.Input(0).Name)
			all[v] = s.fisher(tape, v)
		} else if tape.Needs(v) && tape.DType(v) == ir.Float {
			all[v] = s.sign(tape, v)
		}
	}
	return all
}

// sign adds an input of random signs in the shape of v.
func (s *taylorStep) sign(tape *grad.Tape, v *ir.Value) *ir.Value {
	in := tape.Input("signs", ir.Float, tape.Shape(v)...)
	a := &ir.Array{DType: ir.Float, Shape: tape.Shape(v)}
	a.Data = make([]byte, a.Spec().Bytes())
	s.inputs[in.Name], s.signs = a, append(s.signs, a)
	return in
}

// fisher adds a random vector whose covariance is the Fisher information of the rows of class scores v, diag(p) - ppᵀ
// with their softmax p: √p times random signs, minus p times their sum.
func (s *taylorStep) fisher(tape *grad.Tape, v *ir.Value) *ir.Value {
	p := tape.Op("Softmax", []*ir.Value{v})
	x := tape.Op("Mul", []*ir.Value{tape.Op("Sqrt", []*ir.Value{p}), s.sign(tape, v)})
	sum := tape.Op("ReduceSum", []*ir.Value{x, tape.Ints(-1)}, ir.IntAttr("keepdims", 1))
	return tape.Op("Sub", []*ir.Value{x, tape.Op("Mul", []*ir.Value{p, sum})})
}

func (t *taylor) close() {
	if t.current != nil {
		t.current.session.Close()
		t.current = nil
	}
}
