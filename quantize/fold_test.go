package quantize

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

var folded = variant{foldBatchNormMethod, nil}

// equivalent runs a method that only rescales, and checks that the outputs are the same except for rounding, in ONNX
// Runtime and in the embedded engine. It returns nil if nothing was changed.
func equivalent(t *testing.T, w *conform.Worker, v variant, path string, floor float64) *result {
	t.Helper()
	r := &comparison{variant: v, path: path, out: filepath.Join(t.TempDir(), "out.onnx")}
	if changed(v.apply(t, path, r.out)) == 0 {
		return nil
	}
	res := v.apply(t, path, r.out, func(o *job.Options) { o.Verify = &job.Verification{Force: true} })
	r.sameInterface(t, opened(t, path).Model, opened(t, r.out).Model)
	r.valid(t, w)
	r.runs(t, w)
	for _, o := range r.outputs {
		if float64(o.SQNR) < floor && o.MaxErr > smallest {
			t.Errorf("%s on %s: %s: %.1f dB in ONNX Runtime", v, label(path), o.Name, float64(o.SQNR))
		}
	}
	p := res.Report.Verification
	if p == nil || p.Skipped != "" {
		return &result{res, r, t}
	}
	for _, o := range p.Outputs {
		if o.Errors != nil && o.Errors.DB() < floor {
			t.Errorf("%s on %s: %s: %.1f dB in the embedded engine", v, label(path), o.Name, o.Errors.DB())
		}
	}
	return &result{res, r, t}
}

// smallest is the tolerance of outputs close to zero: ONNX Runtime's Sigmoid has steps of 6e-8.
const smallest = 5e-7

// rounding is the minimum SQNR of rescaled models, in dB: lower where they compute in 16 bits, or their outputs are
// differences of nearly equal numbers.
func rounding(path string) float64 {
	if slices.Contains(append(unstable, "half", "qwen35_tiny"), label(path)) {
		return 60
	}
	return 90
}

func TestFoldedModelsComputeTheSame(t *testing.T) {
	many(t)
	w := conform.Start(t)
	n := 0
	for _, path := range slices.Concat(conform.Fixtures(t), conform.QuickModels(t)) {
		if equivalent(t, w, folded, path, rounding(path)) != nil {
			n++
		}
	}
	if n < 6 {
		t.Errorf("%d models were changed", n)
	}
}

// norm is a BatchNormalization of x's n channels.
func (s *builder) norm(x *ir.Value, n int64) *ir.Value {
	variance := make([]float32, n)
	for i := range variance {
		variance[i] = float32(0.3 + s.random.Float64())
	}
	return s.node("BatchNormalization", []*ir.Value{x, s.weight("scale", n), s.weight("B", n), s.weight("mean", n),
		s.AddConst("var", quanttest.TensorOf(ir.Float, []int64{n}, variance))}, ir.FloatAttr("epsilon", 1e-3))
}

// counts is how many nodes of each operator the output has.
func (r result) counts() map[string]int {
	ops := map[string]int{}
	for n := range opened(r.t, r.out).Model.Nodes() {
		ops[n.Op.Type]++
	}
	return ops
}

type foldingCase struct {
	name  string
	build func(s *builder) (y *ir.Value, shape []int64)
	left  map[string]int // nodes
}

// Patterns, and the nodes after folding.
var foldings = []foldingCase{
	{"Conv", func(s *builder) (*ir.Value, []int64) {
		x := s.node("Conv", []*ir.Value{s.input("x", 1, 6, 5, 5), s.weight("w", 4, 6, 3, 3)})
		return s.norm(x, 4), []int64{1, 4, 3, 3}
	}, map[string]int{"Conv": 1}},
	{"grouped Conv with bias", func(s *builder) (*ir.Value, []int64) {
		x := s.node("Conv", []*ir.Value{s.input("x", 1, 6, 5), s.weight("w", 4, 3, 2), s.weight("b", 4)},
			ir.IntAttr("group", 2))
		return s.norm(x, 4), []int64{1, 4, 4}
	}, map[string]int{"Conv": 1}},
	{"ConvTranspose", func(s *builder) (*ir.Value, []int64) {
		x := s.node("ConvTranspose", []*ir.Value{s.input("x", 1, 6, 3, 3), s.weight("w", 6, 5, 2, 2)})
		return s.norm(x, 5), []int64{1, 5, 4, 4}
	}, map[string]int{"ConvTranspose": 1}},
	{"grouped ConvTranspose", func(s *builder) (*ir.Value, []int64) {
		x := s.node("ConvTranspose", []*ir.Value{s.input("x", 1, 6, 3, 3), s.weight("w", 6, 4, 2, 2)}, ir.IntAttr("group", 3))
		return s.norm(x, 12), []int64{1, 12, 4, 4}
	}, map[string]int{"ConvTranspose": 1}},
	{"Gemm", func(s *builder) (*ir.Value, []int64) {
		in := []*ir.Value{s.input("x", 3, 6), s.weight("w", 4, 6), s.weight("c", 1, 4)}
		x := s.node("Gemm", in, ir.IntAttr("transB", 1), ir.FloatAttr("alpha", 0.5), ir.FloatAttr("beta", 2))
		return s.norm(x, 4), []int64{3, 4}
	}, map[string]int{"Gemm": 1}},
	{"MatMul", func(s *builder) (*ir.Value, []int64) {
		return s.norm(s.node("MatMul", []*ir.Value{s.input("x", 3, 6), s.weight("w", 6, 4)}), 4), []int64{3, 4}
	}, map[string]int{"MatMul": 1, "Add": 1}},
	{"MatMul with bias, its weight transposed", func(s *builder) (*ir.Value, []int64) {
		w := s.node("Transpose", []*ir.Value{s.weight("w", 4, 6)}, ir.IntsAttr("perm", 1, 0))
		x := s.node("MatMul", []*ir.Value{s.input("x", 3, 6), w})
		return s.norm(s.node("Add", []*ir.Value{s.weight("b", 4), x}), 4), []int64{3, 4}
	}, map[string]int{"MatMul": 1, "Add": 1, "Transpose": 1}},
	{"MatMul of batches, by number", func(s *builder) (*ir.Value, []int64) {
		x := s.node("MatMul", []*ir.Value{s.input("x", 2, 3, 6), s.weight("w", 6, 4)})
		return s.node("Div", []*ir.Value{s.node("Add", []*ir.Value{x, s.weight("b", 1, 1, 4)}), s.weight("d", 1)}),
			[]int64{2, 3, 4}
	}, map[string]int{"MatMul": 1, "Add": 1}},
	{"before Conv", func(s *builder) (*ir.Value, []int64) {
		x := s.norm(s.node("Relu", []*ir.Value{s.input("x", 1, 6, 5, 5)}), 6)
		return s.node("Conv", []*ir.Value{x, s.weight("w", 4, 3, 3, 3), s.weight("b", 4)}, ir.IntAttr("group", 2)),
			[]int64{1, 4, 3, 3}
	}, map[string]int{"Relu": 1, "Conv": 1}},
	{"before Gemm", func(s *builder) (*ir.Value, []int64) {
		x := s.norm(s.node("Relu", []*ir.Value{s.input("x", 5, 6)}), 6)
		return s.node("Gemm", []*ir.Value{x, s.weight("w", 6, 3)}), []int64{5, 3}
	}, map[string]int{"Relu": 1, "Gemm": 1}},
	{"before padded Conv", func(s *builder) (*ir.Value, []int64) {
		x := s.norm(s.node("Relu", []*ir.Value{s.input("x", 1, 6, 5, 5)}), 6)
		x = s.node("Conv", []*ir.Value{x, s.weight("w", 4, 6, 3, 3)}, ir.IntsAttr("pads", 1, 1, 1, 1))
		return s.node("Mul", []*ir.Value{x, s.weight("m", 4, 1, 1)}), []int64{1, 4, 5, 5}
	}, map[string]int{"Relu": 1, "BatchNormalization": 1, "Conv": 1}},
	{"a chain", func(s *builder) (*ir.Value, []int64) {
		x := s.node("Conv", []*ir.Value{s.input("x", 1, 6, 5, 5), s.weight("w", 4, 6, 3, 3)})
		x = s.node("Sub", []*ir.Value{s.node("Mul", []*ir.Value{s.weight("m", 1, 4, 1, 1), x}), s.weight("a", 4, 1, 1)})
		return s.norm(x, 4), []int64{1, 4, 3, 3}
	}, map[string]int{"Conv": 1}},
	{"one weight, two of them", func(s *builder) (*ir.Value, []int64) {
		x, w := s.input("x", 1, 6, 5, 5), s.weight("w", 4, 6, 3, 3)
		a, b := s.node("Conv", []*ir.Value{x, w}), s.node("Conv", []*ir.Value{x, w})
		return s.node("Add", []*ir.Value{s.norm(a, 4), s.norm(b, 4)}), []int64{1, 4, 3, 3}
	}, map[string]int{"Conv": 2, "BatchNormalization": 2, "Add": 1}},
	{"one bias, two of them", func(s *builder) (*ir.Value, []int64) {
		x, b := s.input("x", 1, 6, 5, 5), s.weight("b", 4)
		c := s.node("Conv", []*ir.Value{x, s.weight("w", 4, 6, 3, 3), b})
		d := s.node("Conv", []*ir.Value{x, s.weight("v", 4, 6, 3, 3), b})
		return s.node("Add", []*ir.Value{s.norm(c, 4), d}), []int64{1, 4, 3, 3}
	}, map[string]int{"Conv": 2, "Add": 1}},
	{"another axis", func(s *builder) (*ir.Value, []int64) {
		x := s.node("Conv", []*ir.Value{s.input("x", 1, 6, 6, 6), s.weight("w", 4, 6, 3, 3)})
		return s.node("Mul", []*ir.Value{x, s.weight("m", 4)}), []int64{1, 4, 4, 4}
	}, map[string]int{"Conv": 1, "Mul": 1}},
	{"read twice", func(s *builder) (*ir.Value, []int64) {
		x := s.node("Conv", []*ir.Value{s.input("x", 1, 6, 6, 6), s.weight("w", 4, 6, 3, 3)})
		return s.node("Add", []*ir.Value{s.norm(x, 4), s.node("Sin", []*ir.Value{x})}), []int64{1, 4, 4, 4}
	}, map[string]int{"Conv": 1, "BatchNormalization": 1, "Add": 1, "Sin": 1}},
}

func TestFoldings(t *testing.T) {
	w := conform.Start(t)
	for _, version := range []int64{7, 9, 14, 15, 22} {
		for _, f := range foldings {
			if version < 11 && f.name == "before Gemm" {
				continue // C is a required input of Gemm below opset 11
			}
			t.Run(fmt.Sprint(f.name, " ", version), func(t *testing.T) {
				s := newBuilder(t, version)
				y, shape := f.build(s)
				s.output("y", y, shape...)
				path := s.save()
				if err := w.Check(path, true); err != nil && version >= 14 {
					t.Fatal(err)
				}
				r := equivalent(t, w, folded, path, 100)
				if r == nil {
					if f.left["BatchNormalization"]+f.left["Mul"] == 0 {
						t.Fatal("nothing was changed")
					}
					return
				}
				if r.outputs == nil {
					t.Fatal("ONNX Runtime does not run it")
				}
				if got := r.counts(); fmt.Sprint(got) != fmt.Sprint(f.left) {
					t.Errorf("left %v, want %v", got, f.left)
				}
			})
		}
	}
}

// Skipped normalizations have a reason.
func TestNotFoldedHasReasons(t *testing.T) {
	for name, want := range map[string]string{
		"before padded Conv":      "Conv pads with zeros",
		"one weight, two of them": "several consumers: w",
		"read twice":              "output of Conv has other consumers",
	} {
		i := slices.IndexFunc(foldings, func(f foldingCase) bool { return f.name == name })
		s := newBuilder(t, 15)
		y, shape := foldings[i].build(s)
		s.output("y", y, shape...)
		r := folded.apply(t, s.save(), filepath.Join(t.TempDir(), "out.onnx"))
		for _, row := range r.Report.Ledger {
			if row.Tensor == "scale" && (row.Status != pass.Skipped.String() || !strings.HasSuffix(row.Why(), want)) {
				t.Errorf("%s: %q, want %q", name, row.Why(), want)
			}
		}
	}
}

// Training mode, and non-finite factors, are not folded.
func TestFoldBatchNormRefuses(t *testing.T) {
	for name, spoil := range map[string]func(n *ir.Node){
		"training": func(n *ir.Node) { n.SetAttr(ir.IntAttr("training_mode", 1)) },
		"infinite": func(n *ir.Node) {
			n.Input(1).SetConst(quanttest.TensorOf(ir.Float, []int64{4}, []float32{1, float32(math.Inf(1)), 1, 1}))
		},
	} {
		s := newBuilder(t, 15)
		x := s.node("Conv", []*ir.Value{s.input("x", 1, 6, 5, 5), s.weight("w", 4, 6, 3, 3)})
		y := s.norm(x, 4)
		spoil(y.Producer())
		s.output("y", y, 1, 4, 3, 3)
		if r := folded.apply(t, s.save(), filepath.Join(t.TempDir(), "out.onnx")); changed(r) != 0 {
			t.Errorf("%s: %d weights were changed", name, changed(r))
		}
	}
}
