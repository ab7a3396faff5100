package grad

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// A probe is one node whose gradients are compared with finite differences.
type probe struct {
	op      ir.OpID
	opset   int64 // 0 for the newest
	attrs   []*ir.Attr
	in      []*ir.Array // nil where absent; Double ones are differentiated
	outputs int         // 0 for 1
	tell    string      // name of the case if the operator is ambiguous
	single  bool        // Double inputs are Float ones of the model

	build func(g *ir.Graph, in []*ir.Value) *ir.Value // builds several nodes instead of op
}

// values returns normally distributed numbers.
func values(seed uint64, shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Double, shape...)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range ir.View[float64](a) {
		ir.View[float64](a)[i] = r.NormFloat64()
	}
	return a
}

// separated returns numbers whose distances to each other are at least 0.1, and to multiples of 0.1 at least 0.05, so
// that operators with kinks there and ties are differentiable.
func separated(seed uint64, shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Double, shape...)
	x := ir.View[float64](a)
	for i, p := range rand.New(rand.NewPCG(seed, 2)).Perm(len(x)) {
		x[i] = 0.1*float64(p-len(x)/2) + 0.05
	}
	return a
}

// model is the probe's node as a model of its own.
func (p probe) model() *ir.Model {
	m := ir.NewModel()
	version := p.opset
	if version == 0 {
		version = 24
	}
	m.Opsets = []ir.Opset{{Version: version}}
	if !ir.DefaultDomain(p.op.Domain) {
		m.Opsets = append(m.Opsets, ir.Opset{Domain: p.op.Domain, Version: 1})
	}
	g := m.Graph
	var in []*ir.Value
	for i, a := range p.in {
		switch {
		case a == nil:
			in = append(in, nil)
		case a.DType == ir.Double:
			v := g.NewValue(fmt.Sprintf("x%d", i))
			v.Type = typeOf(p.input(a).Spec())
			g.Inputs = append(g.Inputs, v)
			in = append(in, v)
		default:
			in = append(in, g.AddConst(fmt.Sprintf("k%d", i), &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)}))
		}
	}
	if p.build != nil {
		g.AddOutput(p.build(g, in))
		return m
	}
	n := g.NewNode(p.op, in, p.attrs...)
	var out []*ir.Value
	for i := range max(1, p.outputs) {
		out = append(out, g.NewValue(fmt.Sprintf("y%d", i)))
	}
	n.SetOutputs(out...)
	g.Append(n)
	for _, v := range out {
		g.AddOutput(v)
	}
	return m
}

// input is the argument for an array of type Double.
func (p probe) input(a *ir.Array) *ir.Array {
	if p.single {
		return rounded(a)
	}
	return a
}

func (p probe) inputs() map[string]*ir.Array {
	in := map[string]*ir.Array{}
	for i, a := range p.in {
		if a != nil && a.DType == ir.Double {
			in[fmt.Sprintf("x%d", i)] = p.input(a)
		}
	}
	return in
}

// check compares the gradients of Σ r·y, for random r, with central differences in float64.
func (p probe) check(t *testing.T) {
	t.Helper()
	in := p.inputs()
	specs := map[string]ir.Spec{}
	for name, a := range in {
		specs[name] = a.Spec()
	}
	tape, err := New(t.Context(), p.model(), Options{Inputs: specs})
	if err != nil {
		t.Fatal(err)
	}
	inputs := tape.Graph().Inputs[:len(in):len(in)]
	for _, v := range inputs {
		tape.Want(v)
	}
	weights, seeds := map[string]*ir.Array{}, map[*ir.Value]*ir.Value{}
	for i, y := range tape.Graph().Outputs {
		if tape.DType(y) != ir.Double {
			continue
		}
		r := tape.Graph().NewValue(fmt.Sprintf("r%d", i))
		r.Type = typeOf(tape.types[y])
		tape.Graph().Inputs = append(tape.Graph().Inputs, r)
		weights[y.Name], seeds[y] = values(uint64(100+i), tape.Shape(y)...), r
	}
	if err := tape.Backward(seeds); err != nil {
		t.Fatal(err)
	}
	compareStored(t, tape)
	args := map[string]*ir.Array{}
	for y, r := range seeds {
		args[r.Name] = weights[y.Name]
	}
	tape.Graph().Outputs = nil
	for _, v := range inputs {
		if tape.Grad(v) == nil {
			t.Fatalf("input %s has no gradient", v.Name)
		}
		tape.Graph().AddOutput(tape.Grad(v))
		args[v.Name] = in[v.Name]
	}
	got := run(t, tape.Model, args)
	for _, v := range inputs {
		p.compare(t, v.Name, got[tape.Grad(v).Name], weights)
	}
}

// compare compares the gradient of an input with finite differences.
func (p probe) compare(t *testing.T, name string, got *ir.Array, weights map[string]*ir.Array) {
	t.Helper()
	in := p.inputs()
	if fmt.Sprint(got.Shape) != fmt.Sprint(in[name].Shape) {
		t.Fatalf("gradient of %s has shape %v, want %v", name, got.Shape, in[name].Shape)
	}
	s := open(t, p.model())
	loss := func() (sum float64) {
		out, err := s.Run(t.Context(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		for y, r := range weights {
			for i, w := range ir.View[float64](r) {
				sum += w * ir.View[float64](out[y])[i]
			}
		}
		return sum
	}
	const h = 1e-5
	x := ir.View[float64](in[name])
	for i := range x {
		was := x[i]
		x[i] = was + h
		above := loss()
		x[i] = was - h
		below := loss()
		x[i] = was
		want, is := (above-below)/(2*h), ir.View[float64](got)[i]
		if !(math.Abs(want-is) <= 1e-6*(1+math.Abs(want))) {
			t.Errorf("d/d%s[%d] is %.9g, finite difference %.9g", name, i, is, want)
			return
		}
	}
}

func open(t *testing.T, m *ir.Model) *engine.Interpreter {
	t.Helper()
	s, err := engine.Open(t.Context(), m, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func run(t *testing.T, m *ir.Model, in map[string]*ir.Array) map[string]*ir.Array {
	t.Helper()
	out, err := open(t, m).Run(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkAll checks each probe in a subtest.
func checkAll(t *testing.T, probes []probe) {
	for i, p := range probes {
		t.Run(fmt.Sprintf("%s%s_%d", p.op.Type, p.tell, i), p.check)
	}
}

// onnx names an operator of the default domain.
func onnx(typ string) ir.OpID { return ir.OpID{Type: typ} }
