package verify

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// sums accumulate Errors. The order of additions is that of the elements.
type sums struct {
	signal, got2, dot, noise, maxError   float64
	nonFinite, sourceNonFinite, elements int64
}

// readBlock is the number of elements converted at once.
const readBlock = 4096

// add accumulates two tensors of the same shape, of types that number reads.
func (s *sums) add(want, got *ir.Array) {
	var w, g [readBlock]float64
	n := int(want.Elems())
	for at := 0; at < n; at += readBlock {
		k := min(n-at, readBlock)
		number.Read(w[:k], want, at)
		number.Read(g[:k], got, at)
		for i := range k {
			s.pair(w[i], g[i])
		}
	}
}

// pair accumulates one element. The conversions around products forbid a fused multiply-add, so
// that sums are the same on all CPUs.
func (s *sums) pair(w, g float64) {
	s.elements++
	if !finite(w) || !finite(g) {
		if !finite(w) {
			s.sourceNonFinite++
		}
		if w != g && !(math.IsNaN(w) && math.IsNaN(g)) {
			s.nonFinite++
		}
		return
	}
	d := w - g
	s.signal += float64(w * w)
	s.got2 += float64(g * g)
	s.dot += float64(w * g)
	s.noise += float64(d * d)
	s.maxError = max(s.maxError, math.Abs(d))
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// errors rounds to digits that do not depend on the CPU.
func (s *sums) errors() verification.Errors {
	e := verification.Errors{Exact: s.noise == 0 && s.nonFinite == 0, Elements: s.elements, NonFinite: s.nonFinite, SourceNonFinite: s.sourceNonFinite}
	if s.elements > s.sourceNonFinite {
		e.Max = rounded(s.maxError, 0)
	}
	if s.nonFinite > 0 {
		return e
	}
	e.SQNR = rounded(10*math.Log10(s.signal/s.noise), 3)
	e.Cosine = rounded(min(1, s.dot/(math.Sqrt(s.signal)*math.Sqrt(s.got2))), 9)
	return e
}

// rounded rounds to a number of decimals, where 0 keeps all; nil if x is not finite.
func rounded(x float64, decimals int) *float64 {
	if !finite(x) {
		return nil
	}
	if decimals > 0 {
		p := math.Pow10(decimals)
		x = math.Round(x*p) / p
	}
	return &x
}
