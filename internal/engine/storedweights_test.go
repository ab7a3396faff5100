package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// stored runs the model with weights of the store, and returns the outputs.
func stored(t *testing.T, m *ir.Model, in map[string]*ir.Array, s *engine.Store) (map[string]*ir.Array, error) {
	t.Helper()
	e, err := engine.Open(context.Background(), m, engine.Options{Workers: 2, Store: s})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.Run(context.Background(), in, nil)
}

// aligned is a copy of b in memory like that of a mapped file.
func aligned(b []byte) []byte {
	a := ir.AlignedBytes(int64(len(b)))
	copy(a, b)
	return a
}

// written runs the model and returns its stored weights and outputs; nil if it does not run.
func written(t *testing.T, m *ir.Model, in map[string]*ir.Array) ([]byte, map[string]*ir.Array) {
	t.Helper()
	s := &engine.Store{Key: "key"}
	want, err := stored(t, m, in, s)
	if err != nil {
		return nil, nil
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return aligned(b.Bytes()), want
}

// A session with stored weights computes bit-identical outputs, on every model.
func TestStoredWeights(t *testing.T) {
	for _, path := range slices.Concat(conform.QuickModels(t), conform.Fixtures(t)) {
		t.Run(modelName(path), func(t *testing.T) {
			f, err := onnx.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			batch, err := sample(f.Model.Graph, path)
			if err != nil {
				t.Skip(err)
			}
			data, want := written(t, f.Model, batch.Inputs)
			if want == nil {
				t.Skip("the model does not run")
			}
			got, err := stored(t, f.Model, batch.Inputs, &engine.Store{Key: "key", Data: data})
			if err != nil {
				t.Fatal(err)
			}
			for name := range want {
				if !bytes.Equal(got[name].Data, want[name].Data) || !slices.Equal(got[name].Text, want[name].Text) {
					t.Errorf("output %q differs", name)
				}
			}
		})
	}
}

// Weights that are stored are not read from the model, whatever form they have.
func TestStoredWeightsReplaceThoseOfTheModel(t *testing.T) {
	for name, weight := range storedForms() {
		t.Run(name, func(t *testing.T) {
			m, in := weight()
			data, want := written(t, m, in)
			if want == nil {
				t.Fatal("the model does not run")
			}
			for v := range m.Values() {
				if v.Const != nil && v.Const.Bytes() > 64<<10 {
					v.Const.Source = ir.Output{} // cannot be read
				}
			}
			got, err := stored(t, m, in, &engine.Store{Key: "key", Data: data})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got["y"].Data, want["y"].Data) {
				t.Error("output differs")
			}
		})
	}
}

// Damaged weights, and those of another key, are refused.
func TestInvalidStoredWeights(t *testing.T) {
	m, in := storedForms()["dense"]()
	data, _ := written(t, m, in)
	for name, invalid := range map[string]func() (string, []byte){
		"empty":     func() (string, []byte) { return "key", []byte{} },
		"other":     func() (string, []byte) { return "another", data },
		"foreign":   func() (string, []byte) { return "key", []byte(strings.Repeat("x", 1000)) },
		"truncated": func() (string, []byte) { return "key", data[:len(data)-64] },
		"payload":   func() (string, []byte) { b := aligned(data); b[len(b)-70] ^= 1; return "key", b },
		"header":    func() (string, []byte) { b := aligned(data); b[100] ^= 1; return "key", b },
	} {
		t.Run(name, func(t *testing.T) {
			key, bad := invalid()
			if _, err := stored(t, m, in, &engine.Store{Key: key, Data: bad}); !errors.Is(err, engine.ErrStored) {
				t.Errorf("got error %v, want ErrStored", err)
			}
		})
	}
}

// storedForms are models with one weight of more than 64 KiB in each form, and an input.
func storedForms() map[string]func() (*ir.Model, map[string]*ir.Array) {
	form := func(value func(g *ir.Graph) *ir.Value, apply func(g *ir.Graph, x, w *ir.Value) *ir.Value,
		shape ...int64) func() (*ir.Model, map[string]*ir.Array) {
		return func() (*ir.Model, map[string]*ir.Array) {
			m := ir.NewModel()
			m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
			a := ir.NewArray(ir.Float, shape...)
			x := m.Graph.AddValue("x")
			x.Type = &ir.Type{Elem: ir.Float, Shape: make([]ir.Dim, len(shape))}
			for i, n := range shape {
				x.Type.Shape[i] = ir.Dim{N: n}
			}
			for i := range ir.View[float32](a) {
				ir.View[float32](a)[i] = float32(i%17) / 4
			}
			m.Graph.Inputs = []*ir.Value{x}
			y := apply(m.Graph, x, value(m.Graph))
			y.Name = "y"
			m.Graph.AddOutput(y)
			return m, map[string]*ir.Array{"x": a}
		}
	}
	weight := func(every int, shape ...int64) func(g *ir.Graph) *ir.Value {
		return func(g *ir.Graph) *ir.Value {
			r, a := rand.New(rand.NewPCG(1, 2)), ir.NewArray(ir.Float, shape...)
			for i := range ir.View[float32](a) {
				if i%every == 0 {
					ir.View[float32](a)[i] = float32(r.NormFloat64())
				}
			}
			return g.AddConst("w", &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)})
		}
	}
	quantized := func(g *ir.Graph) *ir.Value {
		return dequantizedWeight{ir.Int8, []int64{300, 290}, 1, 0, true}.value(g, rand.New(rand.NewPCG(1, 2)))
	}
	constant := func(g *ir.Graph, name string, a *ir.Array) *ir.Value {
		return g.AddConst(name, &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)})
	}
	sparse8 := func(g *ir.Graph) *ir.Value {
		values, scale := ir.NewArray(ir.Int8, 600, 400), ir.NewArray(ir.Float)
		for i := range values.Data {
			if i%11 == 0 {
				values.Data[i] = byte(i)
			}
		}
		ir.View[float32](scale)[0] = 0.5
		return g.Insert(nil, "DequantizeLinear", []*ir.Value{constant(g, "values", values),
			constant(g, "scale", scale)})
	}
	single := func(name string) func(g *ir.Graph, x, w *ir.Value) *ir.Value {
		return func(g *ir.Graph, x, w *ir.Value) *ir.Value { return g.Insert(nil, name, []*ir.Value{x, w}) }
	}
	integer := func(g *ir.Graph, x, w *ir.Value) *ir.Value {
		narrow := func(v *ir.Value) *ir.Value {
			return g.Insert(nil, "Cast", []*ir.Value{v}, ir.IntAttr("to", int64(ir.Uint8)))
		}
		return g.Insert(nil, "MatMulInteger", []*ir.Value{narrow(x), narrow(g.Insert(nil, "Abs", []*ir.Value{w}))})
	}
	// signed is an int8 weight whose large elements are few.
	signed := func(shape ...int64) func(g *ir.Graph) *ir.Value {
		return func(g *ir.Graph) *ir.Value {
			r, a := rand.New(rand.NewPCG(3, 4)), ir.NewArray(ir.Int8, shape...)
			for i := range a.Data {
				a.Data[i] = byte(int8(max(-127, min(127, 36*r.NormFloat64()))))
			}
			return constant(g, "w", a)
		}
	}
	pairs := func(g *ir.Graph, x, w *ir.Value) *ir.Value {
		return g.Insert(nil, "MatMulInteger", []*ir.Value{g.Insert(nil, "Cast", []*ir.Value{x},
			ir.IntAttr("to", int64(ir.Uint8))), w})
	}
	qdqConv := func(g *ir.Graph, x, w *ir.Value) *ir.Value {
		scale := ir.NewArray(ir.Float)
		ir.View[float32](scale)[0] = 0.125
		s, zero, wZero := constant(g, "scale", scale), constant(g, "zero", ir.NewArray(ir.Uint8)),
			constant(g, "w_zero", ir.NewArray(ir.Int8))
		quantize := func(v *ir.Value) *ir.Value { return g.Insert(nil, "QuantizeLinear", []*ir.Value{v, s, zero}) }
		dequantize := func(v, zero *ir.Value) *ir.Value {
			return g.Insert(nil, "DequantizeLinear", []*ir.Value{v, s, zero})
		}
		return dequantize(quantize(g.Insert(nil, "Conv",
			[]*ir.Value{dequantize(quantize(x), zero), dequantize(w, wZero)})), zero)
	}
	return map[string]func() (*ir.Model, map[string]*ir.Array){
		"pairs":      form(signed(300, 300), pairs, 2, 300),
		"qdqconv":    form(signed(80, 100, 3, 3), qdqConv, 1, 100, 9, 9),
		"dense":      form(weight(1, 300, 130), matMul, 3, 300),
		"transposed": form(weight(1, 130, 300), transposed, 3, 300),
		"sparse":     form(weight(11, 600, 400), matMul, 3, 600),
		"winograd":   form(weight(1, 64, 64, 3, 3), single("Conv"), 1, 64, 9, 9),
		"conv":       form(weight(1, 64, 256, 1, 1), single("Conv"), 1, 256, 9, 9),
		"sparseConv": form(weight(11, 64, 64, 3, 3), single("Conv"), 1, 64, 9, 9),
		"added":      form(weight(1, 200, 100), single("Add"), 200, 100),
		"quantized":  form(quantized, matMul, 2, 300),
		"int8":       form(weight(1, 300, 300), integer, 2, 300),
		"int8zeros":  form(weight(31, 300, 300), integer, 16, 300),
		"sparse8":    form(sparse8, matMul, 8, 600),
	}
}

// The layouts of stored weights are those of this version. If one changes on purpose, raise StoredVersion and replace
// the digests: weights that an earlier program stored must not be loaded.
func TestStoredVersion(t *testing.T) {
	want := map[string]string{
		"added":      "5dc942eaac7207c1",
		"conv":       "47c960eaec89480a",
		"dense":      "5004522b8d9357e9",
		"int8":       "91ae720af5bc44bc",
		"int8zeros":  "357232d0e5f3e157",
		"pairs":      "5b658fbe84b42dc3",
		"qdqconv":    "13934b81254c8296",
		"quantized":  "cf7110a643e6030c",
		"sparse":     "4ad8bb84f3fb2113",
		"sparse8":    "2e032e5de4b22561",
		"sparseConv": "465214776e0a85cb",
		"transposed": "1d805aaed89d8579",
		"winograd":   "5e58a16fbc37a98f",
	}
	if kernel.GemmIntWidth() == 1 { // without pairs
		want["pairs"], want["qdqconv"] = "3470ec36171216be", "a0b933e10acd420b"
	}
	if engine.StoredVersion != 4 {
		t.Errorf("the digests are those of version 4, not %d", engine.StoredVersion)
	}
	for name, form := range storedForms() {
		m, in := form()
		data, _ := written(t, m, in)
		if got := fmt.Sprintf("%x", sha256.Sum256(data))[:16]; got != want[name] {
			t.Errorf("%q: %q,", name, got)
		}
	}
}
