package engine

import (
	"math"

	"github.com/mcompress/mcompress/ir"
)

// fuseGelu fuses x·½·(1 + erf(x/√2)) into com.microsoft Gelu, for each order of the factors that exporters use. i is
// the Erf.
func fuseGelu(f *fusion, i int) bool {
	erf := f.p.steps[i]
	if !erf.is("Erf") {
		return false
	}
	scaled, iScaled := f.producer(erf.in[0])
	x := f.factorOf(scaled, math.Sqrt2)
	if x == absent || !f.consumedBy(erf.in[0], i) {
		return false
	}
	add, iAdd := f.onlyConsumer(erf.out[0])
	if !add.is("Add") {
		return false
	}
	one, _ := add.otherInput(erf.out[0])
	if v, ok := f.scalar(one); !ok || v != 1 {
		return false
	}
	gone := []int{iScaled, i, iAdd}
	last, steps := f.geluProduct(add.out[0], x)
	if last == absent {
		return false
	}
	gone = append(gone, steps...)
	out := f.p.steps[last].out
	s := fused(ir.OpID{Domain: "com.microsoft", Type: "Gelu"}, 1, f.p.steps[last], []int{x}, out)
	if s == nil {
		return false
	}
	f.replace(last, s, gone...)
	return true
}

// factorOf is x where s is x/d or x·(1/d), else absent.
func (f *fusion) factorOf(s *step, d float64) int {
	// Exporters write √2 with different numbers of digits.
	near := func(v float32, want float64) bool { return math.Abs(float64(v)/want-1) < 1e-5 }
	switch {
	case s.is("Div"):
		if v, ok := f.scalar(s.in[1]); ok && near(v, d) {
			return s.in[0]
		}
	case s.is("Mul"):
		for k := range 2 {
			if v, ok := f.scalar(s.in[k]); ok && near(v, 1/d) {
				return s.in[1-k]
			}
		}
	}
	return absent
}

// geluProduct finds the Mul steps that multiply y by x and by ½: (y·x)·½, (y·½)·x or y·(x·½). It returns the last one
// and all of them.
func (f *fusion) geluProduct(y, x int) (int, []int) {
	first, i := f.onlyConsumer(y)
	if !first.is("Mul") {
		return absent, nil
	}
	o, _ := first.otherInput(y)
	// Tried first: in the other two orders the factor is x itself or a constant.
	if s, j := f.producer(o); s.is("Mul") && o != x { // y·(x·½)
		if f.halves(s, x) && f.consumedBy(o, i) {
			return i, []int{j, i}
		}
	}
	last, j := f.onlyConsumer(first.out[0])
	if !last.is("Mul") {
		return absent, nil
	}
	p, _ := last.otherInput(first.out[0])
	if o == x && f.isHalf(p) || f.isHalf(o) && p == x {
		return j, []int{i, j}
	}
	return absent, nil
}

func (f *fusion) isHalf(o int) bool {
	v, ok := f.scalar(o)
	return ok && v == 0.5
}

// halves reports whether s is x·½.
func (f *fusion) halves(s *step, x int) bool {
	o, _ := s.otherInput(x)
	return o != absent && f.isHalf(o)
}
