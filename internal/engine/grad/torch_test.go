package grad

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// A recording is one of the models of testdata/torch that make_linear.py and make_sequences.py write.
type recording struct {
	Params, Consts map[string]numbersOf
	Nodes          []struct {
		Op     string
		Inputs []string
		Output string
		Attrs  map[string]any
	}
	Output string
	Y, DY  numbersOf
	Grads  map[string]numbersOf
}

type numbersOf struct {
	Shape []int64
	Data  []float32
	Ints  []int64
}

func (n numbersOf) array() *ir.Array {
	if n.Ints != nil {
		return ir.ArrayOf(n.Ints, n.Shape...)
	}
	return ir.ArrayOf(n.Data, n.Shape...)
}

func (r *recording) model() *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 24}}
	values := map[string]*ir.Value{}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		v := m.Graph.AddValue(name)
		v.Type = typeOf(r.Params[name].array().Spec())
		m.Graph.Inputs = append(m.Graph.Inputs, v)
		values[name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(r.Consts)) {
		a := r.Consts[name].array()
		values[name] = m.Graph.AddConst(name, &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)})
	}
	for _, n := range r.Nodes {
		var in []*ir.Value
		for _, name := range n.Inputs {
			in = append(in, values[name])
		}
		values[n.Output] = m.Graph.Insert(nil, n.Op, in, attrsOf(n.Attrs)...)
	}
	m.Graph.AddOutput(values[r.Output])
	return m
}

func attrsOf(attrs map[string]any) []*ir.Attr {
	var out []*ir.Attr
	for name, v := range attrs {
		switch v := v.(type) {
		case []any:
			a := ir.IntsAttr(name)
			for _, i := range v {
				a.Ints = append(a.Ints, int64(i.(float64)))
			}
			out = append(out, a)
		case string:
			out = append(out, ir.StringAttr(name, v))
		case float64:
			a := ir.IntAttr(name, int64(v))
			if name == "epsilon" || name == "alpha" || name == "beta" {
				a = ir.FloatAttr(name, float32(v))
			}
			out = append(out, a)
		}
	}
	return out
}

// Outputs and gradients of whole models equal those of PyTorch.
func TestModelsEqualPyTorch(t *testing.T) {
	for _, name := range []string{"transformer", "mlp", "activations", "decoder", "recurrent"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/torch/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			r := &recording{}
			if err := json.Unmarshal(text, r); err != nil {
				t.Fatal(err)
			}
			r.check(t)
		})
	}
}

func (r *recording) check(t *testing.T) {
	specs, args := map[string]ir.Spec{}, map[string]*ir.Array{}
	for name, p := range r.Params {
		args[name] = p.array()
		specs[name] = args[name].Spec()
	}
	tape, err := New(t.Context(), r.model(), Options{Inputs: specs, Train: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	y, params := tape.Graph().Outputs[0], slices.Clone(tape.Graph().Inputs)
	for _, v := range params {
		tape.Want(v)
	}
	seed := tape.Input("dy", ir.Float, tape.Shape(y)...)
	args[seed.Name] = r.DY.array()
	if err := tape.Backward(map[*ir.Value]*ir.Value{y: seed}); err != nil {
		t.Fatal(err)
	}
	for _, v := range params {
		if tape.Grad(v) == nil {
			t.Fatalf("%q has no gradient", v.Name)
		}
		tape.Graph().AddOutput(tape.Grad(v))
	}
	got := run(t, tape.Model, args)
	near(t, "output", got[y.Name], r.Y)
	for _, v := range params {
		near(t, v.Name, got[tape.Grad(v).Name], r.Grads[v.Name])
	}
	sameResults(t, tape, args, got)
}

// near compares with a tolerance of 1e-5 of the largest element, or of rounding errors near zero.
func near(t *testing.T, what string, got *ir.Array, want numbersOf) {
	t.Helper()
	if fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		t.Fatalf("%s has shape %v, want %v", what, got.Shape, want.Shape)
	}
	top := 0.0
	for _, v := range want.Data {
		top = max(top, math.Abs(float64(v)))
	}
	for i, v := range ir.View[float32](got) {
		if !(math.Abs(float64(v-want.Data[i])) <= max(1e-5*top, 1e-6)) {
			t.Fatalf("%s: element %d is %v, PyTorch %v", what, i, v, want.Data[i])
		}
	}
}

// sameResults runs the step with other numbers of workers.
func sameResults(t *testing.T, tape *Tape, args, want map[string]*ir.Array) {
	for _, workers := range []int{1, 3} {
		s, err := engine.Open(t.Context(), tape.Model, engine.Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got, err := s.Run(t.Context(), args, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, a := range want {
			if !slices.Equal(a.Data, got[name].Data) {
				t.Errorf("%s differs with %d workers", name, workers)
			}
		}
	}
}
