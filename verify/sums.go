package verify

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/engine/number"
	"github.com/mcompress/mcompress/ir"
)

// Errors say how far numbers are from those that are wanted, over all samples.
type Errors struct {
	SQNR      DB      `json:"sqnr"`       // 10·log₁₀(Σ want² / Σ (want-got)²)
	Cosine    float64 `json:"cosine"`     // of the angle between both as vectors
	MaxErr    float64 `json:"max_error"`  // largest |want-got|
	NonFinite int64   `json:"non_finite"` // elements that are NaN or infinite where they should not be, or are another one
	Elements  int64   `json:"elements"`
}

// A DB is a ratio in decibels. JSON has no infinities: it is "inf" where nothing differs, and
// "-inf" where there is no signal but noise.
type DB float64

// MarshalJSON rounds to a thousandth.
func (d DB) MarshalJSON() ([]byte, error) {
	switch f := float64(d); {
	case math.IsNaN(f):
		return []byte(`"nan"`), nil
	case math.IsInf(f, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-inf"`), nil
	default:
		return fmt.Appendf(nil, "%.3f", f), nil
	}
}

// String is d in decibels, for people.
func (d DB) String() string {
	if math.IsInf(float64(d), 1) {
		return "equal"
	}
	return fmt.Sprintf("%.1f dB", float64(d))
}

// sums accumulate Errors. The order of additions is that of the elements.
type sums struct {
	want2, got2, dot, noise, most float64
	nonFinite, elements           int64
}

// window is how many elements are looked at at once.
const window = 4096

// add takes in two tensors of the same shape.
func (s *sums) add(want, got *ir.Array) error {
	if !slices.Equal(want.Shape, got.Shape) {
		return fmt.Errorf("%s and %s have different shapes", want, got)
	}
	if err := number.Check(got.DType); err != nil {
		return err
	}
	var w, g [window]float64
	n := want.Elems()
	for at := 0; at < int(n); at += window {
		k := min(int(n)-at, window)
		number.Read(w[:k], want, at)
		number.Read(g[:k], got, at)
		for i := range k {
			s.pair(w[i], g[i])
		}
	}
	return nil
}

func (s *sums) pair(w, g float64) {
	s.elements++
	if !finite(w) || !finite(g) {
		if !(math.IsNaN(w) && math.IsNaN(g)) && w != g {
			s.nonFinite++
		}
		return
	}
	d := w - g
	s.want2 += w * w
	s.got2 += g * g
	s.dot += w * g
	s.noise += d * d
	s.most = max(s.most, math.Abs(d))
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// errors are the figures. Where an element is not finite that should be, there is no ratio
// that would mean anything: SQNR is -Inf and Cosine 0.
func (s *sums) errors() Errors {
	e := Errors{MaxErr: s.most, NonFinite: s.nonFinite, Elements: s.elements, SQNR: DB(math.Inf(1)), Cosine: 1}
	switch {
	case s.nonFinite > 0:
		e.SQNR, e.Cosine = DB(math.Inf(-1)), 0
	case s.noise > 0:
		e.SQNR = DB(10 * math.Log10(s.want2/s.noise))
		e.Cosine = 0
		if norm := math.Sqrt(s.want2) * math.Sqrt(s.got2); norm > 0 {
			e.Cosine = s.dot / norm
		}
	}
	return e
}
