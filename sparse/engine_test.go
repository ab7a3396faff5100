package sparse

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// multiplied are models of one product of x and a weight w of 600×500 elements, which is constant, or an input if free.
var multiplied = map[string]func(free bool, keep func(int64) bool) (*ir.Model, weight){
	"MatMul": func(free bool, keep func(int64) bool) (*ir.Model, weight) {
		return productModel(free, random("w", ir.Float, []int64{600, 500}, keep), "MatMul")
	},
	"Gemm": func(free bool, keep func(int64) bool) (*ir.Model, weight) {
		return productModel(free, random("w", ir.Float, []int64{500, 600}, keep), "Gemm", ir.IntAttr("transB", 1),
			ir.FloatAttr("alpha", .5))
	},
}

func productModel(free bool, w weight, op string, attrs ...*ir.Attr) (*ir.Model, weight) {
	m := modelOf(21)
	input := func(name string, s ir.Spec) *ir.Value {
		v := m.Graph.AddValue(name)
		v.Type = typeOf(s)
		m.Graph.Inputs = append(m.Graph.Inputs, v)
		return v
	}
	x := input("x", ir.Spec{DType: ir.Float, Shape: []int64{-1, 600}})
	var v *ir.Value
	if free {
		v = input("w", w.Spec)
	} else {
		v = m.Graph.AddConst("w", &ir.Tensor{Spec: w.Spec, Source: ir.Mem(w.data)})
	}
	y := m.Graph.Insert(nil, op, []*ir.Value{x, v}, attrs...)
	y = m.Graph.Insert(nil, "Relu", []*ir.Value{y})
	y.Type = typeOf(ir.Spec{DType: ir.Float, Shape: []int64{-1, 500}})
	m.Graph.AddOutput(y)
	return m, w
}

// evaluate returns the output of m for a batch of this size, and the memory of its weights.
func evaluate(t *testing.T, m *ir.Model, batch int64, w *weight, o engine.Options) ([]byte, int64) {
	t.Helper()
	s, err := engine.Open(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x := ir.NewArray(ir.Float, batch, 600)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range ir.View[float32](x) {
		ir.View[float32](x)[i] = float32(rng.NormFloat64())
	}
	in := map[string]*ir.Array{"x": x}
	if w != nil {
		in["w"] = ir.NewArray(ir.Float, w.Shape...)
		copy(in["w"].Data, w.data)
	}
	out, err := s.Run(context.Background(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	held, _ := s.Weights()
	return out[m.Graph.Outputs[0].Name].Data, held
}

// TestEngineMultipliesSparse: weights with enough zeros, stored densely or in a form, are multiplied as sparse
// matrices, in the memory of the form. Results are bit-identical to those of a dense weight, which is an input.
func TestEngineMultipliesSparse(t *testing.T) {
	forms := []*pass.Method{cooMethod, csrMethod, deltaMethod, bitmaskMethod, nil}
	for name, model := range multiplied {
		for _, form := range forms {
			for _, p := range []float64{.1, .4} {
				label := name + "/dense"
				if form != nil {
					label = name + "/" + form.Name
				}
				t.Run(label, func(t *testing.T) {
					reference, w := model(true, density(p))
					m, _ := model(false, density(p))
					stored := w.Bytes()
					if form != nil {
						rows, _ := apply(t, m, 2, stepOf(t, form, nil))
						stored = 0
						for _, part := range rowOf(t, rows, "w").After {
							stored += part.Tensor.Bytes()
						}
					}
					least, most := 0., 1.15*float64(stored)
					if form == nil {
						most = 1.15 * 1.25 * p * float64(w.Bytes()) // five bytes for each of four
					}
					if p > .2 { // the dense product is faster
						least, most = float64(w.Bytes()), 1.05*float64(w.Bytes())
					}
					for _, batch := range []int64{1, 7, 40} {
						want, _ := evaluate(t, reference, batch, &w, engine.Options{Workers: 1})
						got, held := evaluate(t, m, batch, nil, engine.Options{Workers: 2})
						if !slices.Equal(got, want) {
							t.Errorf("density %v, batch %d: not bit-identical to the dense product", p, batch)
						}
						if float64(held) < least || float64(held) > most {
							t.Errorf("density %v: %d bytes are held, want %.0f to %.0f", p, held, least, most)
						}
					}
				})
			}
		}
	}
}

// TestEngineDoesNotExpand: the forms that scatter values are loaded in less memory than that of the dense weight.
func TestEngineDoesNotExpand(t *testing.T) {
	for _, form := range []*pass.Method{cooMethod, csrMethod, deltaMethod} {
		m, w := multiplied["MatMul"](false, density(.05))
		apply(t, m, 2, stepOf(t, form, nil))
		evaluate(t, m, 1, nil, engine.Options{Workers: 1,
			Limits: memory.Limits{Memory: w.Bytes(), Weights: w.Bytes(), Fixed: true}})
	}
}
