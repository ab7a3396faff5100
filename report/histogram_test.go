package report

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/pass"
)

// naive counts the elements in the bins of h.
func (h Histogram) naive(xs []float32) []int64 {
	counts := make([]int64, len(h.Counts))
	for _, x := range xs {
		if v := float64(x); v-v == 0 {
			counts[int(math.Floor(v/h.Width)-h.Start/h.Width)]++
		}
	}
	return counts
}

// The counts are those of the bins, whatever the order and the blocks of the elements.
func TestHistogramsCountEveryFiniteElement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOf(rapid.OneOf(rapid.Float32(), rapid.Float32Range(-2, 2),
			rapid.SampledFrom([]float32{0, 1, -1, float32(math.NaN()), float32(math.Inf(-1))}))).Draw(t, "xs")
		b := &binner{}
		b.add(xs)
		h := b.histogram()
		if len(h.Counts) > 2*halfBins {
			t.Fatalf("%d bins", len(h.Counts))
		}
		if want := h.naive(xs); !slices.Equal(h.Counts, want) {
			t.Fatalf("got %v, want %v", h.Counts, want)
		}
		slices.Reverse(xs)
		other := &binner{}
		for _, x := range xs {
			other.add([]float32{x})
		}
		if diff := cmp.Diff(h, other.histogram()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A histogram has between a half and all of its bins: a range is not lost in one bin.
func TestHistogramsFitTheRange(t *testing.T) {
	for _, scale := range []float32{1e-40, 1e-7, 0.3, 1, 1e30} {
		b := &binner{}
		for i := range 1001 {
			b.add([]float32{scale * float32(i-500)})
		}
		if n := len(b.histogram().Counts); n < halfBins {
			t.Errorf("scale %g: %d bins", scale, n)
		}
	}
}

// The histograms are those of the weights with the lowest SQNR, the lowest first, for any number of workers.
func TestHistogramsOfTheWorstWeights(t *testing.T) {
	j := job{model: wide(12), methods: []*pass.Method{halving, rounding}, in: Input{Errors: true, Workers: 1}}
	r := j.build(t)
	valid(t, r)
	if len(r.Histograms) != maxHistograms || r.Histograms[0].Tensor != r.worst().Tensor {
		t.Fatalf("got %d histograms, the first of %q, want %d and %q", len(r.Histograms), r.Histograms[0].Tensor,
			maxHistograms, r.worst().Tensor)
	}
	for _, h := range r.Histograms {
		for name, of := range map[string]Histogram{"before": h.Before, "after": h.After, "error": h.Error} {
			total := int64(0)
			for _, n := range of.Counts {
				total += n
			}
			if total != 4 {
				t.Errorf("%s of %s: %d elements, want 4", name, h.Tensor, total)
			}
		}
		if h.Before.Width != h.After.Width {
			t.Errorf("%s: widths %g and %g", h.Tensor, h.Before.Width, h.After.Width)
		}
	}
	j = job{model: wide(12), methods: []*pass.Method{halving, rounding}, in: Input{Errors: true, Workers: 8}}
	if diff := cmp.Diff(r.Histograms, j.build(t).Histograms); diff != "" {
		t.Errorf("1 and 8 workers (-1 +8):\n%s", diff)
	}
}
