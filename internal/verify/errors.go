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
	lost                                 int64 // of nonFinite: finite in the source
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
		s.block(w[:k], g[:k])
	}
}

// block accumulates elements. The conversions around products forbid a fused multiply-add, so that sums are the
// same on all CPUs. Sums are variables, which the compiler holds in registers: in memory, each addition waits for
// the one before to be stored.
func (s *sums) block(want, got []float64) {
	signal, got2, dot, noise, maxError := s.signal, s.got2, s.dot, s.noise, s.maxError
	got = got[:len(want)]
	for i, w := range want {
		g := got[i]
		if !finite(w) || !finite(g) {
			s.skip(w, g)
			continue
		}
		d := w - g
		signal += float64(w * w)
		got2 += float64(g * g)
		dot += float64(w * g)
		noise += float64(d * d)
		if d = math.Abs(d); d > maxError {
			maxError = d
		}
	}
	s.elements += int64(len(want))
	s.signal, s.got2, s.dot, s.noise, s.maxError = signal, got2, dot, noise, maxError
}

// skip counts an element that is not finite in one of the tensors.
func (s *sums) skip(w, g float64) {
	if !finite(w) {
		s.sourceNonFinite++
	}
	if finite(w) {
		s.lost++
	}
	if w != g && !(math.IsNaN(w) && math.IsNaN(g)) {
		s.nonFinite++
	}
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

// errors rounds to digits that do not depend on the CPU.
func (s *sums) errors() verification.Errors {
	e := verification.Errors{Exact: s.noise == 0 && s.nonFinite == 0, Elements: s.elements, NonFinite: s.nonFinite,
		Lost: s.lost, SourceNonFinite: s.sourceNonFinite}
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
