package job_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/sparse"
)

// A damaged step changes what another one stored, in place of a fault of an encoder or writer.
type damaged struct {
	pass.Selection
	suffix string // of the changed constant, the largest one that has it
	change func(t *ir.Tensor, b []byte) []byte
	of     *string
}

func (damaged) Method() *pass.Method {
	return &pass.Method{Name: "damaged", Command: "sparse", Stage: pass.Sparsify, New: func() pass.Options {
		return &damaged{}
	}}
}

func (d damaged) Run(_ context.Context, s *pass.Step) error {
	var v *ir.Value
	for g := range s.Model.Graphs() {
		for _, c := range g.Consts() {
			if strings.HasSuffix(c.Name, d.suffix) && (v == nil || c.Const.Elems() > v.Const.Elems()) {
				v = c
			}
		}
	}
	if v == nil {
		return errors.New("no constant with suffix " + d.suffix)
	}
	*d.of = strings.TrimSuffix(v.Name, d.suffix)
	r := &ir.Recipe{Name: "damaged", In: []*ir.Tensor{v.Const}, Out: []ir.Spec{v.Const.Spec}}
	r.Run = func(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
		b := make([]byte, r.In[0].Bytes())
		if err := ir.ReadFull(in[0], b, 0); err != nil {
			return err
		}
		_, err := out[0].Write(d.change(r.In[0], b))
		return err
	}
	v.SetConst(r.Derive()[0])
	return nil
}

// shifted moves the second half of packed values by one value.
func shifted(bits int) func(*ir.Tensor, []byte) []byte {
	return func(_ *ir.Tensor, b []byte) []byte {
		half := b[len(b)/2:]
		for i := len(half) - 1; i > 0; i-- {
			half[i] = half[i]<<bits | half[i-1]>>(8-bits)
			if bits == 8 {
				half[i] = half[i-1]
			}
		}
		return b
	}
}

func lost(_ *ir.Tensor, b []byte) []byte {
	clear(b[len(b)-len(b)/8:])
	return b
}

// swapped exchanges the first two elements that differ by more than a fifth.
func swapped(t *ir.Tensor, b []byte) []byte {
	x := kernel.Words[float32](b)
	for i := range x {
		if x[i] > 1.2*x[0] || x[0] > 1.2*x[i] {
			x[0], x[i] = x[i], x[0]
			break
		}
	}
	return b
}

// next moves elements to the next place: that of the next block or channel.
func next(t *ir.Tensor, b []byte) []byte {
	size := len(b) / int(t.Elems())
	return slices.Concat(b[len(b)-size:], b[:len(b)-size])
}

func plusOne(_ *ir.Tensor, b []byte) []byte {
	b[0]++
	return b
}

// turned has the bytes of a matrix in the order of its transpose.
func turned(t *ir.Tensor, b []byte) []byte {
	rows, out := int(t.Shape[0]), make([]byte, 0, len(b))
	for j := range len(b) / rows {
		for i := range rows {
			out = append(out, b[i*len(b)/rows+j])
		}
	}
	return out
}

func doubled(_ *ir.Tensor, b []byte) []byte {
	for i, x := range kernel.Words[float32](b) {
		kernel.Words[float32](b)[i] = 2 * x
	}
	return b
}

// A fault of any encoder, packer or writer ends the run, and nothing is published, whatever reports are written.
func TestDamagedWeightsAreNotPublished(t *testing.T) {
	type change = func(*ir.Tensor, []byte) []byte
	for name, c := range map[string]struct {
		step    pass.Options
		changes map[string][]change // by suffix
		on      string              // transformer.onnx if it is empty
		target  string
		sparse  bool // of weights with few elements
	}{
		"weight-int8": {step: step(t, method(t, "weight-int8")),
			changes: map[string][]change{"_q": {shifted(8), lost, turned}, "_s": {swapped, next, doubled}}},
		"weight-int8 per tensor": {step: step(t, method(t, "weight-int8"), "--per-tensor"),
			changes: map[string][]change{"_q": {shifted(8), lost, turned}, "_s": {doubled}}},
		"weight-int8 asymmetric": {step: step(t, method(t, "weight-int8"), "--asymmetric"),
			changes: map[string][]change{"_q": {shifted(8)}, "_z": {plusOne, next}}},
		"weight-int4": {step: step(t, method(t, "weight-int4")),
			changes: map[string][]change{"_q": {shifted(4), lost}, "_s": {swapped, next, doubled}, "_z": {plusOne, next}}},
		"weight-int4 standard": {step: step(t, method(t, "weight-int4"), "--form", "dequantizelinear", "--search",
			"minmax"), changes: map[string][]change{"_q": {shifted(4), lost, turned}, "_s": {swapped, next}, "_z": {plusOne}}},
		"weight-int4 symmetric": {step: step(t, method(t, "weight-int4"), "--symmetric"),
			changes: map[string][]change{"_q": {shifted(4), lost}, "_s": {swapped, doubled}}},
		"weight-int4 hqq": {step: step(t, method(t, "weight-int4"), "--algo", "hqq"),
			changes: map[string][]change{"_q": {shifted(4), lost}, "_s": {swapped, doubled}}},
		"weight-int2": {step: step(t, method(t, "weight-int2")),
			changes: map[string][]change{"_q": {shifted(2), lost}, "_s": {swapped, doubled}}},
		"dynamic-int8": {step: step(t, method(t, "dynamic-int8")),
			changes: map[string][]change{"_q": {shifted(8), turned}, "_s": {swapped, next, doubled}}},
		"float16": {step: step(t, method(t, "float16")),
			changes: map[string][]change{"_h": {shifted(8), lost, next}}},
		"bfloat16": {step: step(t, method(t, "bfloat16")),
			changes: map[string][]change{"_h": {shifted(8), lost, next}}},
		"float8": {step: step(t, method(t, "float8")),
			changes: map[string][]change{"_q": {shifted(8), turned, lost}, "_s": {swapped, next, doubled}}},
		"palette": {step: step(t, method(t, "palette")), changes: map[string][]change{"_q": {shifted(4), lost},
			"_c": {next, doubled}, "_s": {next, plusOne}}},
		"palette without scales": {step: step(t, method(t, "palette"), "--block", "0", "--entries", "64"),
			changes: map[string][]change{"_q": {shifted(6), lost}, "_c": {next, doubled}}},
		"palette of vectors": {step: step(t, method(t, "palette"), "--vector", "2"),
			changes: map[string][]change{"_q": {shifted(4), lost}, "_c": {doubled}, "_s": {next}}},
		"weight-int4 gptq": {step: step(t, method(t, "weight-int4"), "--algo", "gptq", "--calibrate", "4"),
			changes: map[string][]change{"_q": {shifted(4), lost}, "_s": {swapped, next, doubled}}},
		"static-int8": {step: step(t, method(t, "static-int8"), "--calibrate", "4"),
			changes: map[string][]change{".weight_q": {shifted(8), lost}, ".weight_s": {next, doubled},
				".bias_q": {shifted(8), lost, next}, ".bias_s": {doubled}}, on: "cnn.onnx"},
		"float4": {step: step(t, method(t, "float4")), changes: map[string][]change{"_q": {shifted(4), lost},
			"_s": {next}}, target: "embedded"},
		"l1":  {step: step(t, method(t, "l1")), changes: map[string][]change{".mlp.down.weight": {next, doubled}}},
		"2:4": {step: step(t, method(t, "nm")), changes: map[string][]change{".mlp.down.weight": {next, doubled}}},
		"sparsegpt": {step: step(t, method(t, "sparsegpt"), "--calibrate", "4"),
			changes: map[string][]change{".mlp.down.weight": {next, doubled}}},
		"bitmask": {step: step(t, method(t, "bitmask")), changes: map[string][]change{"c28": {shifted(8), lost},
			"c29": {next, doubled}}, sparse: true},
		"csr": {step: step(t, method(t, "csr")), changes: map[string][]change{"c46": {shifted(8)},
			"c47": {next, doubled}, "c48": {lost}}, sparse: true},
		"delta": {step: step(t, method(t, "delta")), changes: map[string][]change{"c36": {shifted(8), lost},
			"c37": {next, doubled}}, sparse: true},
		"coo": {step: step(t, method(t, "coo")), changes: map[string][]change{"c27": {next}, "c28": {next, doubled}},
			sparse: true},
		"low rank": {step: step(t, method(t, "lowrank")), changes: map[string][]change{".mlp.down.weight": {next, doubled}}},
	} {
		t.Run(name, func(t *testing.T) {
			on := cmp.Or(c.on, "transformer.onnx")
			target, err := pass.ParseTarget(cmp.Or(c.target, "ort"), nil)
			if err != nil {
				t.Fatal(err)
			}
			suffixes := slices.Sorted(maps.Keys(c.changes))
			if testing.Short() { // under the race detector: one change reaches each encoder
				suffixes = suffixes[:1]
			}
			for _, suffix := range suffixes {
				for i, change := range c.changes[suffix] {
					if testing.Short() && i > 0 {
						break
					}
					input, of := take(t, on), ""
					steps := []pass.Options{c.step, &damaged{suffix: suffix, change: change, of: &of}}
					if c.sparse {
						steps = slices.Insert(steps, 0, step(t, method(t, "l1"), "--amount", "0.95"))
					}
					o := options(input, steps...)
					o.Target = target
					_, err := job.Run(context.Background(), o)
					var bug *ir.Bug
					if !errors.As(err, &bug) || !strings.Contains(err.Error(), `tensor "`+of) {
						t.Errorf("change %d of %s%s: %v", i, of, suffix, err)
					}
					if got := files(t, input); !slices.Equal(got, []string{on}) {
						t.Errorf("change %d of %s%s: published %v", i, of, suffix, got)
					}
				}
			}
		})
	}
}

// extremes are weights of rows × cols that encodings round coarsely, clip, or store as zeros.
func extremes(rows, cols int) map[string][]float32 {
	r := rand.New(rand.NewPCG(3, uint64(cols)))
	of := map[string]func(i, j int) float64{
		"normal":       func(i, j int) float64 { return r.NormFloat64() },
		"heavy tails":  func(i, j int) float64 { return math.Pow(math.Abs(r.NormFloat64()), 7) * r.NormFloat64() },
		"tiny":         func(i, j int) float64 { return 1e-30 * r.NormFloat64() },
		"huge":         func(i, j int) float64 { return 1e30 * r.NormFloat64() },
		"any exponent": func(i, j int) float64 { return math.Exp(70*r.Float64()-60) * r.NormFloat64() },
		"dead columns": func(i, j int) float64 { return r.NormFloat64() * math.Pow(1e-39, float64(j%3/2)) },
		"dead rows":    func(i, j int) float64 { return r.NormFloat64() * math.Pow(1e-39, float64(i%3/2)) },
		"columns":      func(i, j int) float64 { return r.NormFloat64() * math.Exp(-float64(j%20)) },
		"equal":        func(i, j int) float64 { return -1.5e-3 },
		"zeros":        func(i, j int) float64 { return 0 },
		"one":          func(i, j int) float64 { return float64(max(0, 1-i-j)) },
		"one large":    func(i, j int) float64 { return 0.3/8 + float64(max(0, 1-i-j)) },
		"positive":     func(i, j int) float64 { return 1 + r.Float64() },
		"integers":     func(i, j int) float64 { return float64(r.IntN(7) - 3) },
		"ties":         func(i, j int) float64 { return float64(r.IntN(20)) + 0.5 },
		"powers of 2":  func(i, j int) float64 { return math.Ldexp(1, r.IntN(25)-20) },
		"few":          func(i, j int) float64 { return r.NormFloat64() * float64(max(0, 1-r.IntN(40))) },
	}
	all := map[string][]float32{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		x := make([]float32, rows*cols)
		for i := range x {
			x[i] = float32(of[name](i/cols, i%cols))
		}
		all[name] = x
	}
	return all
}

// Bounds hold for every weight: a good one is never refused.
func TestBoundsHoldForExtremeWeights(t *testing.T) {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 23}}
	for _, shape := range [][]int64{{96, 40}, {61, 67}} {
		for name, x := range extremes(int(shape[0]), int(shape[1])) {
			for _, op := range []string{"MatMul", "Gather"} {
				v := m.Graph.AddConst(fmt.Sprintf("%s of %s %d", name, op, shape[1]), quanttest.TensorOf(ir.Float, shape, x))
				in := m.Graph.NewValue("x" + v.Name)
				in.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 3}, {N: shape[0]}}}
				from := []*ir.Value{in, v}
				if op == "Gather" {
					in.Type = &ir.Type{Elem: ir.Int64, Shape: []ir.Dim{{N: 3}}}
					slices.Reverse(from)
				}
				m.Graph.Inputs = append(m.Graph.Inputs, in)
				y := m.Graph.Insert(nil, op, from)
				y.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 3}, {N: shape[1]}}}
				m.Graph.AddOutput(y)
			}
		}
	}
	input := filepath.Join(t.TempDir(), "extreme.onnx")
	if _, err := onnx.Save(context.Background(), m, input, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{
		"weight-int8", "weight-int8 --asymmetric", "weight-int8 --per-tensor", "weight-int8 --block 32",
		"dynamic-int8 --asymmetric --embeddings", "dynamic-int8 --reduce-range",
		"weight-int4", "weight-int4 --symmetric", "weight-int4 --search minmax", "weight-int4 --search mse --per-channel",
		"weight-int4 --algo hqq", "weight-int4 --algo hqq --form matmulnbits",
		"weight-int4 --form dequantizelinear", "weight-int2", "weight-int2 --search mse --symmetric --per-channel", "float16",
		"bfloat16", "float8", "float8 --type e5m2 --per-tensor",
		"palette", "palette --entries 4", "palette --entries 256", "palette --block 0", "palette --vector 2",
		"palette --vector 4 --entries 256 --block 0",
		"coo", "csr", "bsr", "bitmask", "delta", "lowrank",
	} {
		words := strings.Fields(c)
		o := options(input, step(t, method(t, words[0]), words[1:]...))
		o.Output = filepath.Join(t.TempDir(), "out.onnx")
		if _, err := job.Run(context.Background(), o); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// method is the method of a name.
func method(t *testing.T, name string) *pass.Method {
	t.Helper()
	for _, m := range slices.Concat(quantize.Methods(), prune.Methods(), sparse.Methods()) {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no method %q", name)
	return nil
}
