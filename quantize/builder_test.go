package quantize

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/onnx"
)

// A builder builds a model with random weights.
type builder struct {
	*ir.Graph
	t      *testing.T
	random *rand.Rand
	elem   ir.DType // of inputs, weights and outputs
}

func newBuilder(t *testing.T, version int64) *builder {
	m := ir.NewModel()
	m.Graph.Name = "sketch"
	m.Opsets = []ir.Opset{{Version: version}}
	m.IRVersion = max(4, opset.IRVersion(version))
	return &builder{m.Graph, t, rand.New(rand.NewPCG(5, 6)), ir.Float}
}

// in returns a builder of another graph of the same model.
func (s *builder) in(g *ir.Graph) *builder { return &builder{g, s.t, s.random, s.elem} }

// newFloat16Builder is a builder of a float16 model.
func newFloat16Builder(t *testing.T, version int64) *builder {
	s := newBuilder(t, version)
	s.elem = ir.Float16
	return s
}

func dims(ds []int64) []ir.Dim {
	shape := make([]ir.Dim, len(ds))
	for i, d := range ds {
		shape[i] = ir.Dim{N: d}
	}
	return shape
}

func (s *builder) input(name string, shape ...int64) *ir.Value {
	v := s.NewValue(name)
	v.Type = &ir.Type{Elem: s.elem, Shape: dims(shape)}
	s.Inputs = append(s.Inputs, v)
	return v
}

// weight is a constant of normal distribution; equal names do not mean equal values.
func (s *builder) weight(name string, shape ...int64) *ir.Value {
	x := make([]float32, (ir.Spec{Shape: shape}).Elems())
	for i := range x {
		x[i] = float32(s.random.NormFloat64())
	}
	return s.AddConst(name, quanttest.TensorOf(s.elem, shape, x))
}

// floats is a constant; without a shape it is a scalar.
func (s *builder) floats(shape []int64, x ...float32) *ir.Value {
	return s.AddConst("f", quanttest.TensorOf(ir.Float, shape, x))
}

func (s *builder) ints(is ...int64) *ir.Value {
	return s.AddConst("i", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}},
		Source: ir.Ints(is...)})
}

func (s *builder) node(op string, in []*ir.Value, attrs ...*ir.Attr) *ir.Value {
	return s.Insert(nil, op, in, attrs...)
}

func (s *builder) output(name string, v *ir.Value, shape ...int64) {
	v.Name = name
	v.Type = &ir.Type{Elem: s.elem, Shape: dims(shape)}
	s.AddOutput(v)
}

func (s *builder) save() string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "sketch.onnx")
	e := ir.NewEval(s.t.TempDir())
	defer e.Close()
	if err := s.Model().Verify(); err != nil {
		s.t.Fatal(err)
	}
	if _, err := onnx.Save(context.Background(), s.Model(), path,
		onnx.SaveOptions{Workers: 1, Memory: 1 << 26, Eval: e}); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// A result is the output of v for a built model: a valid model that runs, with its ledger.
type result struct {
	*job.Result
	*comparison
	t *testing.T
}

// apply runs v on the model and checks the requirements of every output, and a minimum SQNR in dB.
func (s *builder) apply(v variant, floor float64, change ...func(*job.Options)) result {
	s.t.Helper()
	w := conform.Start(s.t)
	path := s.save()
	r := &comparison{variant: v, path: path, out: filepath.Join(s.t.TempDir(), "out.onnx")}
	res := v.apply(s.t, path, r.out, change...)
	if err := w.Check(path, true); err != nil {
		s.t.Fatalf("the sketch is no valid model: %v", err)
	}
	r.valid(s.t, w)
	r.runs(s.t, w)
	if db := conform.LowestSQNR(r.outputs); r.outputs == nil || db < floor {
		s.t.Errorf("%s: %.1f dB, want %.1f", v, db, floor)
	}
	return result{res, r, s.t}
}

// row is the ledger row of a tensor: its status, and its form or reason.
func (r result) row(tensor string) string {
	if all := r.rows(tensor); len(all) > 0 {
		return all[0]
	}
	return ""
}

func (r result) rows(tensor string) (all []string) {
	for _, row := range r.Report.Ledger {
		if row.Tensor == tensor {
			all = append(all, strings.Join(strings.Fields(fmt.Sprint(row.Status, " ", row.Form, " ", row.Why())), " "))
		}
	}
	return all
}

// expect checks that rows begin with the given texts.
func (r result) expect(rows map[string]string) {
	r.t.Helper()
	for tensor, want := range rows {
		got := r.rows(tensor)
		if !slices.ContainsFunc(got, func(row string) bool { return strings.HasPrefix(row, want) }) {
			r.t.Errorf("%s: %s: %q, want %q", r.variant, tensor, got, want)
		}
	}
}

// int8Constants counts the 8-bit constants of more than n elements in the output.
func (r result) int8Constants(n int64) int {
	count := 0
	for g := range opened(r.t, r.out).Model.Graphs() {
		for _, v := range g.Consts() {
			if (v.Const.DType == ir.Int8 || v.Const.DType == ir.Uint8) && v.Const.Elems() > n {
				count++
			}
		}
	}
	return count
}
