package verify

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// chain is x → Mul(w) "scaled" → Add(b) "moved" → Relu "y", each with one weight.
func chain(w, b float32) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	g := m.Graph
	floats := func(dims ...int64) *ir.Type {
		t := &ir.Type{Elem: ir.Float}
		for _, d := range dims {
			t.Shape = append(t.Shape, ir.Dim{N: d})
		}
		return t
	}
	x := g.AddValue("x")
	x.Type = floats(1, 4)
	g.Inputs = append(g.Inputs, x)
	last := x
	for _, l := range []struct {
		op, name string
		weight   *float32
	}{{"Mul", "scaled", &w}, {"Add", "moved", &b}, {"Relu", "y", nil}} {
		in := []*ir.Value{last}
		if l.weight != nil {
			in = append(in, g.AddConst("w", scalar(*l.weight)))
		}
		last = g.Insert(nil, l.op, in)
		last.Name = l.name
	}
	last.Type = floats(1, 4)
	g.AddOutput(last)
	return m
}

func scalar(x float32) *ir.Tensor {
	a := ir.ArrayOf([]float32{x}, 1)
	return &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)}
}

func open(t *testing.T, m *ir.Model, keep []string) *engine.Interpreter {
	t.Helper()
	e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1, Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func made(t *testing.T, m *ir.Model, samples int) *dataset.Set {
	t.Helper()
	set, err := dataset.Generate(dataset.Inputs(m.Graph), dataset.Random{Samples: samples})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// compared runs two models against each other, layers and all.
func compared(t *testing.T, a, b *ir.Model) *verification.Result {
	t.Helper()
	s, err := CommonValues(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	set := made(t, a, 3)
	r, err := Compare(t.Context(), open(t, a, nil), open(t, b, nil), set, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Compare(t.Context(), open(t, a, s.Names), open(t, b, s.Names), set, 1, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAModelIsEqualToItself(t *testing.T) {
	r := compared(t, chain(2, 1), chain(2, 1))
	if e := r.Outputs[0].Errors; !e.Exact || e.Elements != 12 || r.Breaks != nil || r.Data.Samples != 3 {
		t.Errorf("got %+v, breaks at %+v, data %+v", e, r.Breaks, r.Data)
	}
	for _, l := range r.Layers {
		if !l.Errors.Exact {
			t.Errorf("layer %q: %+v", l.Value, l.Errors)
		}
	}
}

func TestBreakNamesTheLayer(t *testing.T) {
	for _, c := range []struct {
		b    *ir.Model
		want string
	}{{chain(2.5, 1), "scaled"}, {chain(2, 3), "moved"}, {chain(2.0001, -9), "moved"}} {
		r := compared(t, chain(2, 1), c.b)
		var names []string
		for _, l := range r.Layers {
			names = append(names, l.Value)
		}
		if want := []string{"scaled", "moved", "y"}; !slices.Equal(names, want) {
			t.Fatalf("layers %q, want %q", names, want)
		}
		if r.Breaks == nil || r.Breaks.Value != c.want {
			t.Errorf("it breaks at %+v, want %q", r.Breaks, c.want)
		}
	}
}

// Relu and Add throw away signal and leave the noise, but compute the same in both models: the blame is
// on what made the noise.
func TestEqualNodesAreNoBreak(t *testing.T) {
	r := compared(t, chain(2, -1), chain(2.02, -1))
	if r.Breaks == nil || r.Breaks.Value != "scaled" || r.Layers[2].Errors.DB() > r.Layers[0].Errors.DB() {
		t.Errorf("it breaks at %+v, SQNR from %v to %v", r.Breaks, r.Layers[0].Errors.DB(), r.Layers[2].Errors.DB())
	}
}

// The error before the failing layer is reported with it.
func TestBreakHasTheSQNRBeforeAndAfter(t *testing.T) {
	r := compared(t, chain(2, 1), chain(2.02, 3))
	want := 10 * math.Log10(1/0.01/0.01) // 2.02 is 1 % more than 2
	if from := r.Breaks.From; from == nil || math.Abs(*from-want) > 0.01 || *r.Breaks.To > 10 {
		t.Errorf("from %v to %v, want from %v", from, *r.Breaks.To, want)
	}
}

// A fake is a session whose outputs are computed by its function.
type fake struct {
	engine.Session
	give func(out map[string]*ir.Array) (map[string]*ir.Array, error)
}

func (f *fake) Run(ctx context.Context, in map[string]*ir.Array, fetch []string) (map[string]*ir.Array, error) {
	out, err := f.Session.Run(ctx, in, fetch)
	if err != nil {
		return nil, err
	}
	return f.give(out)
}

func (f *fake) Watch(ctx context.Context, in map[string]*ir.Array, fetch []string,
	visit func(string, *ir.Array) error) error {
	out, err := f.Run(ctx, in, fetch)
	for _, name := range fetch {
		if err == nil {
			err = visit(name, out[name])
		}
	}
	return err
}

// Layers are compared in one run of each model, also if the models compute them in another order; beyond EarlyBytes
// they are left out.
func TestValuesInAnotherOrder(t *testing.T) {
	for _, c := range []struct {
		names   string
		bytes   int64 // of each value
		dropped int
	}{{"abcdef", 1, 0}, {"badcfe", 1, 0}, {"fabcde", 1, 0}, {"fabcde", EarlyBytes / 4, 1}, {"fedcba", EarlyBytes / 2, 3},
		{"acef", 1, 0}, {"xab", 1, 0}} {
		at := 0
		e := &earlyValues{free: EarlyBytes, values: map[string]*ir.Array{}, dropped: map[string]bool{}}
		e.next = func() (string, *ir.Array, bool) {
			if at++; at > 6 {
				return "", nil, false
			}
			return string("abcdef"[at-1]), &ir.Array{DType: ir.Uint8, Shape: []int64{int64(at)}, Data: make([]byte, c.bytes)},
				true
		}
		for i := range c.names {
			x := e.valueOf(c.names[i : i+1])
			if lost := x == nil; lost != (e.dropped[c.names[i:i+1]] || c.names[i] == 'x') || !lost &&
				x.Shape[0] != int64(c.names[i]-'a'+1) {
				t.Errorf("%s: %c is %v", c.names, c.names[i], x)
			}
		}
		if len(e.dropped) != c.dropped {
			t.Errorf("%s: %d dropped, want %d", c.names, len(e.dropped), c.dropped)
		}
	}
}

// A value of another type or shape under the same name is no layer. What reaches the layers
// after it is not comparable, so that the first of them is reported.
func TestLayersOfAnotherShapeAreSkipped(t *testing.T) {
	a, b := chain(2, 1), chain(2, 3)
	s, err := CommonValues(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, scaled := range []*ir.Array{ir.NewArray(ir.Float, 2, 2), ir.NewArray(ir.Int32, 1, 4), {Kind: ir.Sequence}} {
		other := &fake{open(t, b, s.Names), func(out map[string]*ir.Array) (map[string]*ir.Array, error) {
			if out["scaled"] != nil {
				out["scaled"] = scaled
			}
			return out, nil
		}}
		r := &verification.Result{}
		err := s.Compare(t.Context(), open(t, a, s.Names), other, made(t, a, 1), 1, r)
		if err != nil || len(r.Layers) != 2 || r.Breaks.Value != "moved" {
			t.Errorf("%s: got %+v, breaks at %+v, %v", scaled, r.Layers, r.Breaks, err)
		}
	}
}

// Layers are compared on the samples up to the one that reaches maxLayerBytes.
func TestLayersOfManyBytesAreComparedOnFewSamples(t *testing.T) {
	m := chain(2, 1)
	s, err := CommonValues(t.Context(), m, m)
	if err != nil {
		t.Fatal(err)
	}
	watched := 0
	large := &fake{open(t, m, s.Names), func(out map[string]*ir.Array) (map[string]*ir.Array, error) {
		if out["scaled"] != nil {
			watched++
			out["scaled"] = ir.NewArray(ir.Uint8, maxLayerBytes/2)
		}
		return out, nil
	}}
	if err := s.Compare(t.Context(), large, open(t, m, s.Names), made(t, m, 5), 1, &verification.Result{}); err != nil ||
		watched != 2 {
		t.Errorf("layers of %d samples, %v; want 2", watched, err)
	}
}

func TestErrorsNameTheModel(t *testing.T) {
	m := chain(1, 1)
	broken := errors.New("broken")
	good := open(t, m, nil)
	bad := &fake{good, func(map[string]*ir.Array) (map[string]*ir.Array, error) { return nil, broken }}
	for side, pair := range map[string][2]engine.Session{First: {bad, good}, Second: {good, bad}} {
		_, err := Compare(t.Context(), pair[0], pair[1], made(t, m, 1), Options{})
		var se *SideError
		if !errors.As(err, &se) || se.Side != side || !errors.Is(err, broken) {
			t.Errorf("got %v, want an error of %s", err, side)
		}
	}
}

func TestOutputsThatDoNotMatchAreErrors(t *testing.T) {
	m := chain(1, 1)
	good := open(t, m, nil)
	gives := func(a *ir.Array) engine.Session {
		return &fake{good, func(map[string]*ir.Array) (map[string]*ir.Array, error) {
			return map[string]*ir.Array{"y": a}, nil
		}}
	}
	for want, b := range map[string]engine.Session{
		`output "y": float[1,5], but float[1,4] in the source`: gives(ir.NewArray(ir.Float, 1, 5)),
		`output "y": int8[1,4], but float[1,4] in the source`:  gives(ir.NewArray(ir.Int8, 1, 4)),
		`output "y": seq of 0, but float[1,4] in the source`:   gives(&ir.Array{Kind: ir.Sequence}),
	} {
		if _, err := Compare(t.Context(), good, b, made(t, m, 1), Options{}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := Compare(t.Context(), good, good, made(t, m, 1), Options{Scores: "z"})
	if err == nil || !strings.Contains(err.Error(), `unknown output "z"; outputs are y`) {
		t.Errorf("got %v", err)
	}
}

func TestHalfWidthOutputsAreCompared(t *testing.T) {
	m := chain(1, 1)
	good := open(t, m, nil)
	half := &fake{good, func(map[string]*ir.Array) (map[string]*ir.Array, error) {
		return map[string]*ir.Array{"y": ir.NewArray(ir.Float16, 1, 4)}, nil
	}}
	r, err := Compare(t.Context(), good, half, made(t, m, 1), Options{})
	if err != nil || r.Outputs[0].Errors.Elements != 4 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// The second model need not have inputs that it has no use for.
func TestInputsMissingInTheSecondModel(t *testing.T) {
	a, b := chain(1, 1), chain(1, 1)
	extra := a.Graph.AddValue("extra")
	extra.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}}}
	a.Graph.Inputs = append(a.Graph.Inputs, extra)
	if r := compared(t, a, b); !r.Outputs[0].Errors.Exact {
		t.Errorf("got %+v", r.Outputs[0].Errors)
	}
}

// The neighborhood of the layer has its node, those before and after it, and their edges.
func TestBreakHasItsNeighborhood(t *testing.T) {
	r := compared(t, chain(2, 1), chain(2, 3))
	var names []string
	for i, n := range r.Breaks.Nodes {
		names = append(names, n.Value)
		if want := []int{i - 1}; i > 0 && !slices.Equal(n.Inputs, want) {
			t.Errorf("inputs of %q: %v, want %v", n.Value, n.Inputs, want)
		}
		if n.Worst(r.Breaks) != (n.Value == "moved") || n.Errors == nil {
			t.Errorf("%+v is the worst: %v", n, n.Worst(r.Breaks))
		}
	}
	if want := []string{"scaled", "moved", "y"}; !slices.Equal(names, want) {
		t.Errorf("nodes %q, want %q", names, want)
	}
}
