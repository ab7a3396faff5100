package quantize

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
)

// palettes are options of palette: all numbers of entries and granularities, blocks that do not divide weights, and a
// data type of 4 bits.
var palettes = []variant{
	{Palette{}.Method(), nil},
	{Palette{}.Method(), []string{"target=ort"}},
	{Palette{}.Method(), []string{"entries=4", "block=7"}},
	{Palette{}.Method(), []string{"entries=64"}},
	{Palette{}.Method(), []string{"entries=256", "block=0"}},
	{Palette{}.Method(), []string{"granularity=per-group"}},
	{Palette{}.Method(), []string{"granularity=per-group", "group=5", "entries=64", "block=0"}},
	{Palette{}.Method(), []string{"granularity=per-block"}},
	{Palette{}.Method(), []string{"granularity=per-block", "entries=4", "block=100"}},
	{Palette{}.Method(), []string{"granularity=per-block", "entries=4", "block=51"}},
	{Palette{}.Method(), []string{"vector=2", "entries=256"}},
	{Palette{}.Method(), []string{"vector=4", "block=0"}},
	{Palette{}.Method(), []string{"vector=2", "granularity=per-group", "entries=64"}},
	{Palette{}.Method(), []string{"vector=2", "granularity=per-block", "entries=4", "block=100"}},
	{Palette{}.Method(), []string{"importance=samples"}},
	{Palette{}.Method(), []string{"importance=samples", "granularity=per-group", "entries=64"}},
}

// In ONNX Runtime models compute with the restored weights.
func TestPalettesInONNXRuntime(t *testing.T) {
	w := conform.Start(t)
	for _, name := range []string{"cnn", "half", "recurrent", "opset7"} {
		for i, v := range palettes {
			if name != "cnn" && i%3 != len(name)%3 && i > 1 {
				continue
			}
			t.Run(v.String()+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				out, twin := filepath.Join(dir, "out.onnx"), filepath.Join(dir, "twin.onnx")
				if restoredModel(t, v, fixture(name), out, twin) == 0 {
					t.Fatal("no weight was changed")
				}
				if err := w.Check(out, true); err != nil {
					t.Error(err)
				}
				outputs, err := w.Compare(twin, out, conform.Options{Level: "basic"})
				if err != nil {
					t.Fatal(err)
				}
				if got := conform.LowestSQNR(outputs); got < 60 {
					t.Errorf("%.1f dB from the restored weights", got)
				}
			})
		}
	}
}

// palettized are the weights that v stores for a product with x, 64 × 96.
func palettized(t *testing.T, v variant, x []float32) []float32 {
	t.Helper()
	s := newBuilder(t, 13)
	s.output("y", s.node("MatMul",
		[]*ir.Value{s.input("x", 2, 64), s.AddConst("w", quanttest.TensorOf(ir.Float, []int64{64, 96}, x))}), 2, 96)
	got, _ := written(t, v, s.save())
	return got["w"]
}

// Weights with as many distinct values as entries, or fewer, stay exact.
func TestPaletteOfFewValuesIsExact(t *testing.T) {
	for _, v := range palettes {
		if strings.Contains(v.String(), "vector=") {
			continue
		}
		x := make([]float32, 64*96)
		for i := range x {
			x[i] = []float32{-3, 0.1, 1e-3, 7.7}[i*i%5%4]
		}
		for i, got := range palettized(t, v, x) {
			if got != x[i] {
				t.Fatalf("%s: %g became %g", v, x[i], got)
			}
		}
	}
}

// More entries have a smaller error, and pruned weights stay zero.
func TestPaletteErrors(t *testing.T) {
	random := newBuilder(t, 13).random
	x := make([]float32, 64*96)
	for i := range x {
		if x[i] = float32(random.NormFloat64()); i%2 == 1 {
			x[i] = 0
		}
	}
	for _, granularity := range []string{"per-tensor", "per-group"} {
		last := math.Inf(1)
		for _, entries := range []int{4, 16, 64, 256} {
			v := variant{Palette{}.Method(), []string{fmt.Sprint("entries=", entries), "granularity=" + granularity, "block=16"}}
			sum, weight := 0., 0.
			for i, got := range palettized(t, v, x) {
				if x[i] == 0 && got != 0 {
					t.Fatalf("%s: 0 became %g", v, got)
				}
				sum += math.Pow(float64(x[i]-got), 2)
				weight += math.Pow(float64(x[i]), 2)
			}
			if sum >= last/4 || sum == 0 {
				t.Errorf("%s: error %g, %g with fewer entries", v, sum/weight, last/weight)
			}
			last = sum
		}
	}
}

// With samples, channels of large inputs have smaller errors.
func TestPaletteImportance(t *testing.T) {
	for _, options := range [][]string{{"entries=16"}, {"entries=4", "block=0"}, {"entries=64"}} {
		sum := map[string]float64{}
		for _, importance := range []string{"none", "samples"} {
			s := newBuilder(t, 13)
			const k, n = 64, 96
			x, scale := make([]float32, k*n), make([]float32, k)
			for i := range x {
				x[i] = float32(s.random.NormFloat64())
			}
			for i := range scale {
				scale[i] = float32(math.Exp(s.random.NormFloat64() * 2))
			}
			scaled := s.node("Mul", []*ir.Value{s.input("x", 2, k),
				s.AddConst("scale", quanttest.TensorOf(ir.Float, []int64{k}, scale))})
			s.output("y", s.node("MatMul", []*ir.Value{scaled, s.AddConst("w", quanttest.TensorOf(ir.Float, []int64{k, n}, x))}),
				2, n)
			got, _ := written(t, variant{Palette{}.Method(), append([]string{"importance=" + importance}, options...)}, s.save())
			for i, v := range got["w"] {
				sum[importance] += math.Pow(float64(x[i]-v)*float64(scale[i/n]), 2)
			}
		}
		if sum["samples"] > 0.97*sum["none"] {
			t.Errorf("%s: squared error %g, %g without samples", options, sum["samples"], sum["none"])
		}
	}
}

// An element of a vector is wrong by at most twice the maximum magnitude, and vectors of 2 with 8 bits are about as
// exact as numbers with 4.
func TestPaletteVectorErrors(t *testing.T) {
	random := newBuilder(t, 13).random
	x, most := make([]float32, 64*96), 0.
	for i := range x {
		x[i] = float32(random.NormFloat64())
		most = max(most, math.Abs(float64(x[i])))
	}
	for options, ratio := range map[string]float64{"vector=2 entries=256 block=16": 0.02,
		"vector=2 entries=256 block=0": 0.02, "vector=4 entries=256 block=0": 0.1} {
		sum, squares := 0., 0.
		for i, got := range palettized(t, variant{Palette{}.Method(), strings.Fields(options)}, x) {
			e := math.Abs(float64(x[i] - got))
			if e > 2*most {
				t.Errorf("%s: %g became %g", options, x[i], got)
			}
			sum, squares = sum+float64(x[i])*float64(x[i]), squares+e*e
		}
		if squares > ratio*sum {
			t.Errorf("%s: squared error %g of the weight's", options, squares/sum)
		}
	}
}
