package quantize

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// tiedModel looks up rows of a table, and multiplies by its transpose. The file has the table, or its transpose, of
// width × 96 elements.
func tiedModel(t *testing.T, width int64, transposed bool) *builder {
	s := newBuilder(t, 21)
	factor := s.AddConst("factor", quanttest.TensorOf(ir.Float, nil, []float32{20}))
	ids := s.node("Cast", []*ir.Value{s.node("Abs", []*ir.Value{s.node("Mul", []*ir.Value{s.input("x", 2, 3), factor})})},
		ir.IntAttr("to", int64(ir.Int64)))
	turn := func(v *ir.Value) *ir.Value { return s.node("Transpose", []*ir.Value{v}, ir.IntsAttr("perm", 1, 0)) }
	var table, head *ir.Value
	if transposed {
		head = s.weight("w", width, 96)
		table = turn(head)
	} else {
		table = s.weight("w", 96, width)
		head = turn(table)
	}
	rows := s.node("Gather", []*ir.Value{table, ids})
	s.output("rows", rows, 2, 3, width)
	s.output("y", s.node("MatMul", []*ir.Value{rows, head}), 2, 3, 96)
	return s
}

// A tie is a matrix of a width that is the table of a lookup, or the transpose of one.
type tie struct {
	width      int64
	transposed bool
}

// Tied embeddings stay tied and quantized, whichever of table and transpose the file has, and whether rows are whole
// bytes and blocks. Each variant has two of the ties, or all by make test-exhaustive.
func TestTiedEmbeddings(t *testing.T) {
	w := conform.Start(t)
	dynamic, int8 := DynamicInt8{}.Method(), WeightInt8{}.Method()
	for i, c := range []struct {
		variant
		form string
	}{
		{variant{dynamic, []string{"embeddings"}}, pass.GatherQuantized.Name},
		{variant{dynamic, []string{"embeddings", "asymmetric"}}, pass.GatherQuantized.Name},
		{variant{dynamic, []string{"embeddings", "per-tensor"}}, pass.GatherQuantized.Name},
		{variant{int8, nil}.on("ort"), "dequantize-linear"},
		{variant{int8, nil}, "cast-mul"},
		{variant{int8, []string{"form=matmulnbits", "asymmetric", "accuracy-level=0"}}.on("ort"), "matmul-nbits"},
		{variant{int8, []string{"form=matmulnbits", "asymmetric", "accuracy-level=0"}}.on("ort-1.22"), "matmul-nbits"},
		{int4.on("ort"), "matmul-nbits"},
		{int4.on("ort,standard-ops"), "dequantize-linear"},
		{int4, "matmul-nbits"},
		{int4.on("standard-ops"), "cast-mul"},
		{variant{int4.method, []string{"form=matmulnbits"}}, "matmul-nbits"},
		{variant{int4.method, []string{"symmetric"}}.on("ort"), "matmul-nbits"},
		{variant{int4.method, []string{"form=matmulnbits", "symmetric"}}, "matmul-nbits"},
		{variant{int4.method, []string{"form=matmulnbits", "algo=hqq"}}, "matmul-nbits"},
		{int2.on("ort"), "matmul-nbits"},
		{int2, "matmul-nbits-wide"},
		{variant{int2.method, []string{"symmetric"}}, "matmul-nbits-wide"},
		{variant{int2.method, []string{"form=matmulnbits"}}.on("ort-1.24"), "matmul-nbits"},
		{variant{Palette{}.Method(), nil}, "cast-mul"},
		{variant{Palette{}.Method(), []string{"granularity=per-group", "entries=64"}}, "cast-mul"},
		{variant{Float8{}.Method(), nil}, "cast-mul"},
		{variant{Float16{}.Method(), nil}, "cast-float16"},
	} {
		for _, tied := range conform.Part(i, 3,
			[]tie{{128, false}, {96, false}, {72, true}, {96, true}, {72, false}, {128, true}}) {
			t.Run(fmt.Sprint(c.variant, " ", tied.width, " ", tied.transposed), func(t *testing.T) {
				form := c.form
				if form == "dequantize-linear" && c.method == int4.method && tied.width == 72 {
					form = "cast-mul" // blocks do not divide the rows
				}
				s := tiedModel(t, tied.width, tied.transposed)
				s.apply(c.variant, 1.8).expect(map[string]string{"w": "changed " + form})
				out, twin := filepath.Join(t.TempDir(), "out.onnx"), filepath.Join(t.TempDir(), "twin.onnx")
				if restoredModel(t, c.variant, s.save(), out, twin) != 1 {
					t.Fatal("the weight was not changed")
				}
				outputs, err := w.Compare(twin, out, conform.Options{Level: "basic"})
				floor := map[bool]float64{true: 20, false: 100}[c.method == dynamic]
				if err != nil || conform.LowestSQNR(outputs) < floor {
					t.Errorf("%v: %.1f dB", err, conform.LowestSQNR(outputs))
				}
				if c.method != dynamic {
					sameModels(t, twin, out)
				}
			})
		}
	}
}
