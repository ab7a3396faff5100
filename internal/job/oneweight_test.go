package job_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// ordinaryElements is the name of elements that every method takes.
const ordinaryElements = "normal"

// hostileElements are elements of weights that encodings and calibration cannot represent, or only barely, and
// ordinary ones, by name.
func hostileElements(n int) map[string][]float32 {
	r := rand.New(rand.NewPCG(7, 7))
	all := map[string][]float32{}
	nan, inf := math.NaN(), math.Inf(1)
	for name, of := range map[string]func(i int) float64{
		ordinaryElements: func(int) float64 { return r.NormFloat64() },
		"NaN":            func(i int) float64 { return [...]float64{nan, 1}[min(i, 1)] },
		"all NaN":        func(int) float64 { return nan },
		"infinity":       func(i int) float64 { return [...]float64{inf, 1}[min(i, 1)] },
		"maximum":        func(i int) float64 { return math.MaxFloat32 * float64(1-i%2*2) },
		"huge":           func(int) float64 { return 1e37 * r.NormFloat64() },
		"tiny":           func(int) float64 { return 1e-37 * r.NormFloat64() },
		"subnormal":      func(int) float64 { return 1e-42 * r.NormFloat64() },
		"mixed":          func(i int) float64 { return r.NormFloat64() * math.Pow(10, float64(i%70-38)) },
		"zeros":          func(int) float64 { return 0 },
	} {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(of(i))
		}
		all[name] = x
	}
	return all
}

// hostile writes a model with layers side by side, the weight or the bias of each with other elements, and a
// product after some.
func hostile(t *testing.T, dt ir.DType) (path string, weights []string) {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
	elements := hostileElements(64 * 64)
	constant := func(name string, shape []int64, x []float32) *ir.Value {
		weights = append(weights, name)
		return m.Graph.AddConst(name, quanttest.TensorOf(dt, shape, x))
	}
	output := func(op string, in ...*ir.Value) *ir.Value {
		y := m.Graph.Insert(nil, op, in)
		y.Type = &ir.Type{Elem: dt}
		return y
	}
	for _, k := range []struct {
		op                  string
		input, weight, bias []int64
	}{
		{"MatMul", []int64{4, 64}, []int64{64, 64}, nil},
		{"Gemm", []int64{4, 64}, []int64{64, 64}, []int64{64}},
		{"Conv", []int64{1, 64, 4, 4}, []int64{64, 64, 1, 1}, []int64{64}},
		{"Gather", []int64{4}, []int64{64, 64}, nil},
	} {
		for _, of := range slices.Sorted(maps.Keys(elements)) {
			for _, inBias := range []bool{false, true}[:1+min(1, len(k.bias))] {
				name, w, b := k.op+" "+of, elements[of], elements[ordinaryElements][:64]
				if inBias {
					name, w, b = name+" bias", elements[ordinaryElements], w[:64]
				}
				x := m.Graph.NewValue("x " + name)
				x.Type = &ir.Type{Elem: dt}
				for _, n := range k.input {
					x.Type.Shape = append(x.Type.Shape, ir.Dim{N: n})
				}
				m.Graph.Inputs = append(m.Graph.Inputs, x)
				in := []*ir.Value{x, constant(name+".weight", k.weight, w)}
				if k.bias != nil {
					in = append(in, constant(name+".bias", k.bias, b))
				}
				if k.op == "Gather" {
					x.Type.Elem = ir.Int64
					slices.Reverse(in)
				}
				y := output("Relu", output(k.op, in...))
				m.Graph.AddOutput(y)
				if k.op == "MatMul" && dt == ir.Float {
					m.Graph.AddOutput(output("MatMul", y, constant(name+" next.weight", k.weight, elements[ordinaryElements])))
				}
			}
		}
	}
	path = filepath.Join(t.TempDir(), "hostile.onnx")
	if _, err := onnx.Save(t.Context(), m, path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path, weights
}

// A weight, or inputs of a layer, that a method can do nothing with are a row with the reason: the run goes on with
// the others.
func TestOneWeightEndsNoRun(t *testing.T) {
	for _, recipe := range []string{
		"weight-int8", "weight-int8 --asymmetric", "weight-int8 --block 32", "weight-int8 --bias-correction",
		"dynamic-int8 --embeddings", "dynamic-int8 --bias-correction",
		"static-int8", "static-int8 --per-tensor", "weight-int4", "weight-int4 --algo gptq", "weight-int4 --algo hqq",
		"weight-int4 --algo awq", "weight-int4 --search mse", "weight-int2",
		"float16", "float16 --compute float16", "bfloat16", "float8", "float8 --type e5m2 --per-tensor", "palette",
		"palette --block 0 --entries 256", "palette --vector 2", "palette --importance samples",
		"l1", "l1-global", "l1-block", "l2", "random", "nm", "wanda", "sparsegpt", "lowrank",
		"smooth + dynamic-int8", "smooth --alpha auto + static-int8", "equalize + static-int8 --per-tensor",
		"l1 + weight-int8", "wanda + weight-int4 --algo gptq", "sparsegpt + weight-int8",
		"l1 + bitmask", "random + csr", "l1 + coo", "nm + palette --vector 2", "l1 + float8 + delta", "l1-block + bsr",
	} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			var steps []pass.Options
			for _, s := range strings.Split(recipe, " + ") {
				words := strings.Fields(s)
				steps = append(steps, step(t, method(t, words[0]), words[1:]...))
			}
			for _, dt := range []ir.DType{ir.Float, ir.Float16} {
				path, weights := hostile(t, dt)
				ordinaryWeightsChanged(t, path, weights, steps, dt)
			}
		})
	}
}

// ordinaryWeightsChanged reports weights without a row, and ordinary ones that no step changed although it changes
// some.
func ordinaryWeightsChanged(t *testing.T, path string, weights []string, steps []pass.Options, dt ir.DType) {
	t.Helper()
	r, err := job.Run(t.Context(), options(path, steps...))
	if err != nil {
		t.Errorf("%s: %v", dt, err)
		return
	}
	rows := map[string]report.Weight{}
	for _, w := range r.Report.Weights {
		rows[w.Tensor] = w
	}
	for _, name := range weights {
		if w, ok := rows[name]; !ok || !w.Changed && w.Reason.None() {
			t.Errorf("%s: weight %q has no row, or one without a reason", dt, name)
		}
	}
	for _, op := range []string{"MatMul", "Gemm", "Conv"} {
		w := rows[op+" "+ordinaryElements+".weight"]
		if !w.Changed && dt == ir.Float && w.Reason.Code != pass.Unsupported {
			t.Errorf("%s: %s is unchanged: %s", dt, w.Tensor, w.Reason)
		}
	}
}

// refusing stores weights, and finds only then that it cannot store some of them.
type refusing struct {
	pass.Selection
	suffix string
}

func (refusing) Method() *pass.Method {
	return &pass.Method{Name: "refusing", Command: "quantize", Stage: pass.Quantize, New: func() pass.Options {
		return &refusing{}
	}}
}

func (o refusing) Run(_ context.Context, s *pass.Step) error {
	for _, v := range pass.Weights(s.Model) {
		if s.Select.Excludes(v, pass.Consumers(v)) {
			s.Ledger.Skip(v, pass.Consumers(v), pass.Reason{Code: pass.NotSelected})
			continue
		}
		before := v.Const
		r := &ir.Recipe{Name: "refusing", In: []*ir.Tensor{before}, Out: []ir.Spec{before.Spec}}
		r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			if strings.HasSuffix(before.Name, o.suffix) {
				return &pass.Unfit{Tensor: before.Name, Reason: pass.Reason{Code: pass.NotConverged}}
			}
			return ir.Copy(ctx, out[0], in[0], before.Bytes())
		}
		v.SetConst(r.Derive()[0])
		s.Ledger.Changed(v, before, pass.Consumers(v),
			pass.Row{Form: pass.InPlace, After: []pass.Part{{Role: pass.Payload, Value: v, Tensor: v.Const}}})
	}
	return nil
}

// Weights that a method refuses only while they are written are left as they are, however many there are, and count
// as weights.
func TestWeightsThatAreRefusedLate(t *testing.T) {
	input := take(t, "mlp.onnx")
	r := run(t, options(input, &refusing{suffix: "weight"}))
	refused := 0
	for _, w := range r.Report.Weights {
		if late := strings.HasSuffix(w.Tensor, "weight"); late == w.Changed || late && w.Reason.Code != pass.NotConverged {
			t.Errorf("%s: changed %v, %s", w.Tensor, w.Changed, w.Reason)
		} else if late {
			refused++
			if !w.Counted {
				t.Errorf("%s does not count", w.Tensor)
			}
		}
	}
	if refused < 2 {
		t.Errorf("%d weights refused", refused)
	}
}

// A weight that is refused again although it was left out ends the run: it does not go on for ever.
func TestRefusalThatLeavingOutDoesNotHelp(t *testing.T) {
	_, err := job.Run(t.Context(), options(take(t, "mlp.onnx"), &stubborn{}))
	var unfit *pass.Unfit
	if !errors.As(err, &unfit) {
		t.Errorf("got %v", err)
	}
}

type stubborn struct{ pass.Selection }

func (stubborn) Method() *pass.Method {
	return &pass.Method{Name: "stubborn", Command: "quantize", Stage: pass.Quantize, New: func() pass.Options {
		return &stubborn{}
	}}
}

func (stubborn) Run(context.Context, *pass.Step) error {
	return &pass.Unfit{Tensor: "w", Reason: pass.Reason{Code: pass.NotFinite}}
}
