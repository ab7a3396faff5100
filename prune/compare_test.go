package prune

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Of the first output, everything is larger than of the second; the third input is small and the last one large.
var compared = []float64{90, 9, 80, 7, 70, 8, 60, 0.5}

// Each comparison prunes other elements; auto is the one with the smallest change of the outputs.
func TestComparisons(t *testing.T) {
	for name, c := range map[string]struct {
		options []string
		want    []float64
	}{
		"row":       {[]string{"compare", "row"}, []float64{0, 0, 80, 7, 0, 0, 60, 0.5}},
		"layer":     {[]string{"compare", "layer"}, []float64{0, 0, 80, 7, 0, 0, 60, 0.5}},
		"magnitude": {[]string{"compare", "magnitude"}, []float64{90, 0, 80, 0, 70, 0, 60, 0}},
	} {
		b := newBench(t)
		w := b.weight("w", ir.Float, []int64{4, 2}, compared...)
		b.g.AddOutput(b.node("MatMul", []*ir.Value{b.scaled(ir.Float, []int64{16, 4}, 1), w}))
		b.run(wandaMethod, c.options...)
		if got := b.values(w); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// The rest of the model decides: after it divides the first output by 1000, the elements of the second one count.
// Trials leave nothing else in the model: the weights are those of the comparison alone.
func TestAutoComparesTheOutputsOfTheModel(t *testing.T) {
	samples := sampleFile(t, 16, 4)
	for _, m := range []string{"wanda", "sparsegpt"} {
		results := map[string][]float64{}
		for _, compare := range []string{"auto", "row", "layer", "block"} {
			if m == "wanda" && compare == "block" {
				continue
			}
			b := newBench(t)
			w := b.weight("w", ir.Float, []int64{4, 2}, 90, 0.9, 80, 0.8, 70, 0.7, 60, 0.6)
			x := b.node("MatMul", []*ir.Value{b.typedInput(16, 4), w})
			b.g.AddOutput(b.node("Mul", []*ir.Value{x, b.weight("factors", ir.Float, []int64{2}, 1e-3, 1)}))
			method := wandaMethod
			if m == "sparsegpt" {
				method = sparseGPTMethod
			}
			b.run(method, "compare", compare, "data", samples)
			results[compare] = b.values(w)
		}
		if !slices.Equal(results["auto"], results["row"]) || slices.Equal(results["row"], results["layer"]) {
			t.Errorf("%s: %v", m, results)
		}
	}
}

// sampleFile is a file of random samples.
func sampleFile(t *testing.T, rows, cols int) string {
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }\n", rows, cols)
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	b = append(b, header...)
	r := rand.New(rand.NewPCG(5, 6))
	for range rows * cols {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(r.NormFloat64())))
	}
	path := filepath.Join(t.TempDir(), "samples.npy")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A fourth of the samples is held out, of too few none, nor for norms.
func TestTrialsHoldSamplesOut(t *testing.T) {
	count := func(s *samplePass) (held, measured int) {
		for i := range s.samples {
			if s.isHeldOut(i) {
				held++
			}
			if s.isTrialSample(i) {
				measured++
			}
		}
		return held, measured
	}
	for _, c := range []struct {
		s              samplePass
		held, measured int
	}{{samplePass{trial: true, fits: true, samples: 9}, 2, 2}, {samplePass{trial: true, fits: true, samples: 3}, 0, 3},
		{samplePass{trial: true, samples: 9}, 0, 9}, {samplePass{fits: true, samples: 9}, 0, 0}} {
		if held, measured := count(&c.s); held != c.held || measured != c.measured {
			t.Errorf("%d samples, trial %t: %d held out, %d measured", c.s.samples, c.s.trial, held, measured)
		}
	}
}

// An output whose size depends on values has an error where it has another size: what one side lacks counts as zeros.
func TestErrorOfOutputsOfAnotherSize(t *testing.T) {
	for _, c := range []struct {
		before, after []float32
		signal, noise float64
	}{
		{[]float32{1, 2}, []float32{1, 2}, 5, 0},
		{[]float32{1, 2, 3}, []float32{1, 2}, 14, 9},
		{[]float32{1}, []float32{1, 2}, 1, 4},
		{nil, []float32{2}, 0, 4},
		{[]float32{2}, nil, 4, 4},
	} {
		of := func(x []float32) *ir.Array {
			return &ir.Array{DType: ir.Float, Shape: []int64{int64(len(x))}, Data: kernel.Bytes(x)}
		}
		s := &samplePass{step: &pass.Step{Eval: ir.NewEval(t.TempDir())}}
		kept, err := s.storeOutputs(t.Context(), map[string]*ir.Array{"y": of(c.before)})
		if err != nil {
			t.Fatal(err)
		}
		e := outputErrors{}
		if err := e.add(kept, map[string]*ir.Array{"y": of(c.after)}); err != nil {
			t.Fatalf("%v, then %v: %v", c.before, c.after, err)
		}
		if got := e["y"]; got.signal != c.signal || total(got.noise) != c.noise {
			t.Errorf("%v, then %v: an error of %g of %g, want %g of %g", c.before, c.after, total(got.noise), got.signal,
				c.noise, c.signal)
		}
	}
}

// The output of the lowest SQNR counts; NaN is worse than any error, and no error better than any.
func TestHighestError(t *testing.T) {
	for _, c := range []struct {
		e    outputErrors
		want []float64
	}{
		{outputErrors{"a": {8, []float64{3, 1}}, "b": {9, []float64{0, 1}}}, []float64{3. / 8, 1. / 8}},
		{outputErrors{"a": {8, []float64{0, 0}}, "b": {}}, nil},
	} {
		if got := c.e.highest(); !slices.Equal(got, c.want) {
			t.Errorf("got %v, want %v", got, c.want)
		}
	}
	if got := (outputErrors{"a": {8, []float64{math.NaN()}}, "b": {8, []float64{8e9}}}).highest(); !math.IsNaN(got[0]) {
		t.Errorf("%v of NaN", got)
	}
}

// A lower error of a single sample is no evidence; the same error spread over all is.
func TestLowerByMoreThanTheStandardError(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		a, b []float64
		want bool
	}{
		{[]float64{2, 1, 1, 1}, []float64{2, 1, 1, 9}, false},
		{[]float64{1, 1, 1, 1}, []float64{3, 3, 4, 2}, true},
		{[]float64{3, 3, 4, 2}, []float64{1, 1, 1, 1}, false},
		{[]float64{1, 1}, []float64{1, 1}, false},
		{[]float64{1}, []float64{2}, true},
		{nil, []float64{1, 1, 1}, true},
		{[]float64{1, 1, 1}, nil, false},
		{[]float64{1, 1, 1}, []float64{1, nan, 1}, true},
		{[]float64{1, nan, 1}, []float64{1, 1, 1}, false},
		{[]float64{nan}, []float64{nan}, false},
	} {
		if got := isLower(c.a, c.b); got != c.want {
			t.Errorf("lower(%v, %v) = %t", c.a, c.b, got)
		}
	}
}
