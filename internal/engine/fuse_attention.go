package engine

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
)

// fuseAttention fuses MatMul(Softmax(scale·MatMul(Q, K) + mask), V) into one operator that does not hold all scores at
// once. Transposes of its inputs and output become permutations of axes. i is the Softmax.
func fuseAttention(f *fusion, i int) bool {
	softmax := f.p.steps[i]
	if !softmax.is("Softmax") {
		return false
	}
	a := &attention{f: f, gone: []int{i}, scale: 1, mask: absent}
	// overLast last: the axis counts from the front below opset 13, so that it needs the ranks that scores found.
	if !a.scores(softmax.in[0], i) || !a.product(softmax.out[0]) || !a.overLast(softmax) {
		return false
	}
	attrs := []*ir.Attr{floatAttr("scale", float32(a.scale))}
	for _, p := range []struct {
		name string
		perm []int64
	}{{"permQ", a.q.perm}, {"permK", a.k.perm}, {"permV", a.v.perm}, {"permY", a.permY}} {
		if p.perm != nil {
			attrs = append(attrs, ir.IntsAttr(p.name, p.perm...))
		}
	}
	s := fused(ir.OpID{Domain: "mcompress", Type: "Attention"}, 1, f.p.steps[a.last],
		[]int{a.q.slot, a.k.slot, a.v.slot, a.mask}, f.p.steps[a.last].out, attrs...)
	if s == nil {
		return false
	}
	f.replace(a.last, s, a.gone...)
	return true
}

// attention is the matched pattern.
type attention struct {
	f       *fusion
	q, k, v side
	mask    int
	scale   float64
	permY   []int64
	widened bool  // scores are converted to float32, and the weights back
	last    int   // step that the fused one replaces
	gone    []int // fused steps
}

// A side is an operand of a product: a slot and its permutation of axes, nil for the identity.
type side struct {
	slot int
	perm []int64
	rank rank
}

// A rank is a number of axes; a lower bound if it is not exact.
type rank struct {
	axes  int
	exact bool
}

// scores matches backwards from the scores o, which only step user may read: an optional sum with a mask, of a product
// times constants.
func (a *attention) scores(o, user int) bool {
	s, i := a.f.producer(o)
	if !a.f.consumedBy(o, user) {
		return false
	}
	if !s.is("Add") {
		return a.matMul(o, user)
	}
	for k := range 2 {
		// A copy, as half a match may have moved factors into the scale.
		try := *a
		try.gone = append(slices.Clone(a.gone), i)
		if s.in[0] != s.in[1] && try.matMul(s.in[k], i) {
			*a = try
			a.mask = s.in[1-k]
			return true
		}
	}
	return false
}

// matMul matches backwards from o to the product of queries and keys.
func (a *attention) matMul(o, user int) bool {
	o, user = a.unscale(o, user)
	// Models in float16 compute the softmax in float32. The fused operator has float32 scores anyway.
	if s, i := a.f.producer(o); s.is("Cast") && s.Int("to", 0) == int64(ir.Float) && a.f.consumedBy(o, user) {
		a.widened, a.gone = true, append(a.gone, i)
		o, user = a.unscale(s.in[0], i)
	}
	s, i := a.f.producer(o)
	if !a.f.consumedBy(o, user) || !isProduct(s) || s.Bool("transA", false) {
		return false
	}
	a.scale *= float64(s.Float("alpha", 1))
	a.gone = append(a.gone, i)
	a.q, a.k = a.side(s.in[0], i), a.side(s.in[1], i)
	// It exchanges the last two axes, which only a permutation of all axes expresses.
	if s.Bool("transB", false) {
		if a.k.perm == nil && a.k.rank.exact {
			a.k.perm = identity(a.k.rank.axes)
		}
		n := len(a.k.perm)
		if n < 2 {
			return false
		}
		a.k.perm = append(slices.Clone(a.k.perm[:n-2]), a.k.perm[n-1], a.k.perm[n-2])
	}
	return a.q.rank.axes >= 2 && a.k.rank.axes >= 2
}

// isProduct reports whether s is a matrix product with at most transposed operands.
func isProduct(s *step) bool {
	if s.is("MatMul") {
		return true
	}
	return s.isOf(fusedMatMulID) && !s.Bool("transBatchA", false) && !s.Bool("transBatchB", false)
}

// product matches forwards from the weights o to their product with the values, and to its Transpose.
func (a *attention) product(o int) bool {
	s, i := a.f.onlyConsumer(o)
	// The fused operator never rounds the weights, so it is at least as accurate.
	for a.f.isRounding(s) {
		// The Cast back to the type of the scores before they were widened.
		a.widened = a.widened && !s.is("Cast")
		a.gone = append(a.gone, i)
		o = s.out[0]
		s, i = a.f.onlyConsumer(o)
	}
	if a.widened || !isProduct(s) || s.in[0] != o || s.in[1] == o || s.Float("alpha", 1) != 1 ||
		s.Bool("transA", false) || s.Bool("transB", false) {
		return false
	}
	scale := a.scale
	a.v = a.side(s.in[1], i)
	// A factor of the values is none of the scores.
	if a.scale != scale || a.v.rank.axes < 2 {
		return false
	}
	a.last, a.gone = i, append(a.gone, i)
	t, j := a.f.onlyConsumer(s.out[0])
	// The last axis has to stay the last: a row of the result is written at once.
	if perm := a.f.permOf(t); len(perm) > 0 && int(perm[len(perm)-1]) == len(perm)-1 {
		a.permY, a.last, a.gone = perm, j, append(a.gone, j)
	}
	return true
}

// isRounding reports whether s at most rounds the weights: an inactive Dropout, or a Cast to another float type.
func (f *fusion) isRounding(s *step) bool {
	switch {
	case s.is("Cast"):
		return slices.Contains([]ir.DType{ir.Float, ir.Float16, ir.BFloat16, ir.Double}, ir.DType(s.Int("to", 0)))
	case s.is("Dropout") && (len(s.out) < 2 || !s.HasConsumer(1)):
		if s.Version < 12 || len(s.in) < 3 || s.in[2] == absent {
			return true
		}
		training := f.array(s.in[2])
		return training != nil && len(training.Data) == 1 && training.Data[0] == 0
	}
	return false
}

// overLast reports whether s is a softmax along the last axis.
func (a *attention) overLast(s *step) bool {
	axis := int64(-1)
	if s.Version < 13 {
		axis = 1
	}
	axis = s.Int("axis", axis)
	return axis == -1 || a.q.rank.exact && a.k.rank.exact && axis == int64(max(a.q.rank.axes, a.k.rank.axes))-1
}

// side matches backwards from o, which step user reads, through constant factors and Transposes.
func (a *attention) side(o, user int) side {
	var perm []int64
	for {
		o, user = a.unscale(o, user)
		s, i := a.f.producer(o)
		before := a.f.permOf(s)
		// A value with another consumer has to be computed anyway.
		if before == nil || perm != nil && len(perm) != len(before) || !a.f.consumedBy(o, user) {
			break
		}
		if perm == nil {
			perm = identity(len(before))
		}
		perm = composed(before, perm)
		a.gone = append(a.gone, i)
		o, user = s.in[0], i
	}
	if perm == nil {
		return side{o, nil, a.f.rankOf(o, maxRankSteps)}
	}
	return side{o, perm, rank{len(perm), true}}
}

// composed is the permutation of first followed by second.
func composed(first, second []int64) []int64 {
	out := make([]int64, len(second))
	for i, p := range second {
		if p < 0 || p >= int64(len(first)) {
			return second // not a permutation: the operator reports it
		}
		out[i] = first[p]
	}
	return out
}

// unscale matches backwards from o, which step user reads, through products with constants.
func (a *attention) unscale(o, user int) (int, int) {
	for {
		s, i := a.f.producer(o)
		x, factor := a.f.scaled(s)
		if x == absent || !a.f.consumedBy(o, user) {
			return o, user
		}
		a.scale *= factor
		a.gone = append(a.gone, i)
		o, user = x, i
	}
}

// scaled is x and c where s is x·c or x/(1/c) with a constant c of one element, else absent.
func (f *fusion) scaled(s *step) (x int, c float64) {
	if s.is("Mul", "Div") {
		if c, ok := f.one(s.in[1]); ok && s.is("Mul") {
			return s.in[0], c
		} else if ok && c != 0 {
			return s.in[0], 1 / c
		}
		// Of a quotient only the divisor is a factor: c/x is not a multiple of x.
		if c, ok := f.one(s.in[0]); ok && s.is("Mul") {
			return s.in[1], c
		}
	}
	return absent, 0
}

// one is the constant in slot o, if it is a single float that does not raise the rank of a matrix.
func (f *fusion) one(o int) (float64, bool) {
	a := f.array(o)
	if a == nil || a.Elems() != 1 || len(a.Shape) > 2 || number.Check(a.DType) != nil {
		return 0, false
	}
	x := make([]float64, 1)
	number.Read(x, a, 0)
	return x[0], true
}

// permOf is the permutation of s, nil if it is not a Transpose or its rank is unknown.
func (f *fusion) permOf(s *step) []int64 {
	if !s.is("Transpose") {
		return nil
	}
	perm := s.Ints("perm")
	if r := f.rankOf(s.in[0], maxRankSteps); perm == nil && r.exact {
		perm = identity(r.axes)
		slices.Reverse(perm)
	}
	return perm
}

func identity(rank int) []int64 {
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	return perm
}

// maxRankSteps bounds the backward search for the rank of a value.
const maxRankSteps = 8

// rankOf is the rank of slot o, as far as it follows from the preceding steps.
func (f *fusion) rankOf(o, steps int) rank {
	if a := f.constant(o); a != nil {
		return rank{len(a.Shape), true}
	}
	if n := f.p.slots[o].rank; n > 0 {
		return rank{n, true}
	}
	s, _ := f.producer(o)
	if s == nil || steps == 0 {
		return rank{}
	}
	switch {
	case s.is("Transpose") && s.Has("perm"):
		return rank{len(s.Ints("perm")), true}
	case s.is("Reshape") && len(s.in) > 1:
		if shape := f.constant(s.in[1]); shape != nil && len(shape.Shape) == 1 {
			return rank{int(shape.Shape[0]), true}
		}
	case s.is("Concat", "Split", "Slice", "Transpose", "Identity", "Cast", "Softmax", "LayerNormalization"):
		return f.rankOf(s.in[0], steps-1)
	case s.is("Add", "Sub", "Mul", "Div"):
		a, b := f.rankOf(s.in[0], steps-1), f.rankOf(s.in[1], steps-1)
		return rank{max(a.axes, b.axes), a.exact && b.exact}
	}
	return rank{}
}
