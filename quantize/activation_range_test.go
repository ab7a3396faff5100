package quantize

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// floatsFile is a .npy of random numbers.
func (s *builder) floatsFile(shape ...int64) string {
	s.t.Helper()
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }",
		strings.Trim(strings.Join(strings.Fields(fmt.Sprint(shape)), ","), "[]"))
	head += strings.Repeat(" ", 128-10-len(head)-1) + "\n"
	x := make([]float32, (ir.Spec{Shape: shape}).Elems())
	for i := range x {
		x[i] = float32(s.random.NormFloat64())
	}
	path := filepath.Join(s.t.TempDir(), "x.npy")
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	if err := os.WriteFile(path, append(append(b, head...), kernel.Bytes(x)...), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// largeActivations is a model whose activations are scaled up by factor and down again.
func largeActivations(t *testing.T, factor float32) *builder {
	s := newBuilder(t, 17)
	h := s.node("MatMul", []*ir.Value{s.input("x", 4, 64), s.weight("w", 64, 96)})
	big := s.node("Mul", []*ir.Value{h, s.AddConst("f", quanttest.TensorOf(ir.Float, nil, []float32{factor}))})
	back := s.node("Mul", []*ir.Value{s.node("Relu", []*ir.Value{big}),
		s.AddConst("g", quanttest.TensorOf(ir.Float, nil, []float32{1 / factor}))})
	h.Name, big.Name, back.Name = "h", "big", "back"
	s.output("y", s.node("MatMul", []*ir.Value{back, s.weight("v", 96, 32)}), 4, 32)
	return s
}

// Activations beyond float16's range on samples stay float32 with the nodes around them, and the ledger has them;
// without samples the outputs are NaN, and the ledger recommends samples.
func TestActivationsBeyondTheRangeStayFloat32(t *testing.T) {
	s := largeActivations(t, 1e4)
	r := s.apply(variant{Float16{}.Method(), []string{"compute=float16", "data=" + s.floatsFile(8, 64)}}, 50)
	r.kinds(map[string]ir.DType{"h": ir.Float16, "big": ir.Float, "back": ir.Float, "y": ir.Float})
	r.expect(map[string]string{"big": "noted activation out of range, kept in float32: maximum magnitude ",
		"w": "changed float16", "v": "changed float16"})
	if got := r.row("big"); !strings.HasSuffix(got, "on the samples, range of float16 ±65504") {
		t.Error(got)
	}
	v := variant{Float16{}.Method(), []string{"compute=float16"}}
	res := v.apply(t, s.save(), filepath.Join(t.TempDir(), "out.onnx"))
	if got := (result{res, nil, t}).row(""); got !=
		"noted activation ranges not measured; use --data: range of float16 ±65504" {
		t.Error(got)
	}
}

// Activations within the range are float16, and the largest is named.
func TestActivationsWithinTheRangeAreFloat16(t *testing.T) {
	s := largeActivations(t, 100)
	r := s.apply(variant{Float16{}.Method(), []string{"compute=float16", "data=" + s.floatsFile(8, 64)}}, 50)
	r.kinds(map[string]ir.DType{"h": ir.Float16, "big": ir.Float16, "back": ir.Float16})
	if got := r.row("big"); !strings.HasPrefix(got, "noted largest activation: ") {
		t.Error(got)
	}
}

// Inputs and outputs beyond the range stay float32 even with --keep-io=false.
func TestInputsAndOutputsBeyondTheRangeStayFloat32(t *testing.T) {
	s := newBuilder(t, 17)
	x := s.input("x", 4, 64)
	s.output("y", s.node("Mul",
		[]*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 96)}),
			s.AddConst("f", quanttest.TensorOf(ir.Float, nil, []float32{1e5}))}), 4, 96)
	s.output("z", s.node("MatMul", []*ir.Value{x, s.weight("v", 64, 32)}), 4, 32)
	path, out := s.save(), filepath.Join(t.TempDir(), "out.onnx")
	v := variant{Float16{}.Method(), []string{"compute=float16", "keep-io=false", "data=" + s.floatsFile(4, 64)}}
	r := result{v.apply(t, path, out), &comparison{variant: v, path: path, out: out}, t}
	r.kinds(map[string]ir.DType{"x": ir.Float16, "y": ir.Float, "z": ir.Float16})
	r.valid(t, conform.Start(t))
}

// Masks with large negative numbers for -infinity do not keep their consumers in float32.
func TestMasksAreWithinTheRange(t *testing.T) {
	s := newBuilder(t, 17)
	h := s.node("MatMul", []*ir.Value{s.input("x", 4, 64), s.weight("w", 64, 96)})
	drop := s.node("Less", []*ir.Value{h, s.AddConst("zero", quanttest.TensorOf(ir.Float, nil, []float32{0}))})
	scores := s.node("Where", []*ir.Value{drop,
		s.AddConst("lowest", quanttest.TensorOf(ir.Float, nil, []float32{-math.MaxFloat32})), h})
	scores.Name = "scores"
	s.output("y", s.node("MatMul", []*ir.Value{s.node("Softmax", []*ir.Value{scores}), s.weight("v", 96, 32)}), 4, 32)
	r := s.apply(variant{Float16{}.Method(), []string{"compute=float16", "data=" + s.floatsFile(8, 64)}}, 40)
	r.kinds(map[string]ir.DType{"scores": ir.Float16})
}
