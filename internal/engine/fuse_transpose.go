package engine

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// fuseTransposedWeight removes a Transpose of the two axes of a constant weight before a MatMul: the weight is packed
// in transposed order. i is the MatMul.
func fuseTransposedWeight(f *fusion, i int) bool {
	mm := f.p.steps[i]
	if !mm.is("MatMul") || len(mm.in) != 2 {
		return false
	}
	t, iT := f.producer(mm.in[1])
	// Only a constant is packed, which costs the same in either order.
	if !slices.Equal(f.permOf(t), []int64{1, 0}) || f.constant(t.in[0]) == nil || !f.consumedBy(t.out[0], i) {
		return false
	}
	s := mm.with(fusedMatMulID, []int{mm.in[0], t.in[0]}, mm.out, intAttr("transB", 1))
	if s == nil {
		return false
	}
	f.replace(i, s, i, iT)
	return true
}

// fuseTranspose turns a Transpose before a MatMul into a permutation of its operand's axes, if the last axis stays in
// the matrices. i is the MatMul.
func fuseTranspose(f *fusion, i int) bool {
	done := false
	for k, name := range []string{"A", "B"} {
		done = transposed(f, i, k, name) || done
	}
	return done
}

func transposed(f *fusion, i, k int, name string) bool {
	mm := f.p.steps[i]
	if !isProduct(mm) && !mm.isOf(linearID) || mm.Has("perm"+name) {
		return false
	}
	t, iT := f.producer(mm.in[k])
	perm := f.permOf(t)
	n := len(perm)
	// Else neither rows nor columns of the matrices are contiguous, as panels need them.
	if n < 2 || !slices.Contains(perm[n-2:], int64(n-1)) || !f.consumedBy(t.out[0], i) || mm.in[0] == mm.in[1] {
		return false
	}
	in := slices.Clone(mm.in)
	in[k] = t.in[0]
	s := mm.with(linearID, in, mm.out, ir.IntsAttr("perm"+name, perm...))
	if s == nil {
		return false
	}
	f.replace(i, s, i, iT)
	return true
}
