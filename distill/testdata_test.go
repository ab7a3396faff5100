package distill

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// features and classes are the sizes of the test data.
const features, classes = 8, 3

// samples writes n samples of three classes as a CSV: normally distributed around one point per class.
func samples(t *testing.T, n int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	var b bytes.Buffer
	for k := range features {
		fmt.Fprintf(&b, "f%d,", k)
	}
	b.WriteString("label\n")
	for i := range n {
		c := i % classes
		for k := range features {
			fmt.Fprintf(&b, "%.4f,", r.NormFloat64()+2*float64((k+c)%classes))
		}
		fmt.Fprintf(&b, "%d\n", c)
	}
	path := filepath.Join(t.TempDir(), "samples.csv")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// network returns a model of Gemm and Relu with these numbers of units.
func network(seed uint64, units ...int64) *ir.Model {
	r := rand.New(rand.NewPCG(seed, 7))
	m := ir.NewModel()
	m.IRVersion = 9
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: units[0]}}}
	g.Inputs = []*ir.Value{x}
	for i := range units[1:] {
		in, out := units[i], units[i+1]
		w := g.AddConst(fmt.Sprintf("w%d", i), random(r, in, out))
		b := g.AddConst(fmt.Sprintf("b%d", i), &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{out}},
			Source: ir.Floats(make([]float32, out)...)})
		y := g.Insert(nil, "Gemm", []*ir.Value{x, w, b})
		if i < len(units)-2 {
			y = g.Insert(nil, "Relu", []*ir.Value{y})
		}
		x = y
	}
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: units[len(units)-1]}}}
	g.AddOutput(x)
	return m
}

func random(r *rand.Rand, shape ...int64) *ir.Tensor {
	t := &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: shape}}
	w := make([]float32, t.Elems())
	for i := range w {
		w[i] = float32(r.NormFloat64() * 0.4)
	}
	t.Source = ir.Floats(w...)
	return t
}

// set returns a function that sets options, which are names and values in turn.
func set(o []string) func(*flag.FlagSet) error {
	return func(fs *flag.FlagSet) error {
		for i := 0; i < len(o); i += 2 {
			if err := fs.Set(o[i], o[i+1]); err != nil {
				return fmt.Errorf("--%s: %w", o[i], err)
			}
		}
		return nil
	}
}

// finetune returns the step with these options.
func finetune(t *testing.T, o ...string) pass.Options {
	t.Helper()
	step, err := pass.NewStep(fineTuning, set(o))
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// tune fine-tunes m as a step of a pipeline.
func tune(t *testing.T, m *ir.Model, workers int, o ...string) (*pass.Result, error) {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	step, err := pass.NewStep(fineTuning, set(o))
	if err != nil {
		return nil, err
	}
	return pass.Run(t.Context(), m, e, pass.Environment{Workers: workers}, []pass.Options{step})
}

// weights returns the bytes of all constants of m, by name.
func weights(t *testing.T, m *ir.Model) map[string][]byte {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	out := map[string][]byte{}
	for _, v := range m.Graph.Consts() {
		b, err := e.ReadAll(t.Context(), v.Const)
		if err != nil {
			t.Fatal(err)
		}
		out[v.Name] = b
	}
	return out
}

// trained returns the weights of a network trained with these options.
func trained(t *testing.T, workers int, o ...string) (map[string][]byte, pass.Training) {
	t.Helper()
	m := network(1, features, 32, 16, classes)
	res, err := tune(t, m, workers, o...)
	if err != nil {
		t.Fatal(err)
	}
	return weights(t, m), res.Trainings[0]
}

func equal(t *testing.T, got, want map[string][]byte, what string) {
	t.Helper()
	for name, b := range want {
		if !bytes.Equal(got[name], b) {
			t.Errorf("%s: weight %s differs", what, name)
		}
	}
}

// maxDifference returns the largest difference between two sets of weights.
func maxDifference(a, b map[string][]byte) (most float64) {
	for name := range a {
		x, y := ir.View[float32](array(a[name])), ir.View[float32](array(b[name]))
		for i := range x {
			most = max(most, float64(max(x[i]-y[i], y[i]-x[i])))
		}
	}
	return most
}

func array(b []byte) *ir.Array {
	a := ir.NewArray(ir.Float, int64(len(b)/4))
	copy(a.Data, b)
	return a
}
