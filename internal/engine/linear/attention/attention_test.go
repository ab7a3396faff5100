package attention

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// plain is attention of one head by its definition, in float64. bias is added to scores.
func plain(s Shape, q, k, v []float64, scale float64, bias func(i, j int) float64) []float64 {
	y := make([]float64, s.Queries*s.Value)
	for i := range s.Queries {
		w := make([]float64, s.Keys)
		for j := range w {
			for d := range s.Size {
				w[j] += q[i*s.Size+d] * k[j*s.Size+d]
			}
			w[j] = w[j]*scale + bias(i, j)
		}
		top, sum := slices.Max(w), 0.0
		for j := range w {
			w[j] = math.Exp(w[j] - top)
			sum += w[j]
		}
		for j := range w {
			for d := range s.Value {
				y[i*s.Value+d] += w[j] / sum * v[j*s.Value+d]
			}
		}
	}
	return y
}

func random(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(float32(r.NormFloat64()))
	}
	return x
}

func to[T Float](x []float64) []T {
	y := make([]T, len(x))
	for i := range x {
		y[i] = T(x[i])
	}
	return y
}

// head is a head of type T over row-major operands.
func head[T Float](s Shape, q, k, v []float64) Head[T] {
	return Head[T]{
		Q: gemm.Rows(to[T](q), s.Size), K: gemm.Rows(to[T](k), s.Size), V: gemm.Rows(to[T](v), s.Value),
		Y: make([]T, s.Queries*s.Value), Stride: s.Value,
	}
}

func run[T Float](workers int, s Shape, o Options[T], heads ...Head[T]) {
	p := op.NewPool(workers)
	defer p.Close()
	work := ir.AlignedBytes(Work[T](s, len(heads), workers))
	for i := range work {
		work[i] = 0xFF // NaN: earlier contents must not matter
	}
	Run(p, s, work, o, heads)
}

func wantNear[T Float](t *testing.T, got []T, want []float64, within float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= within) {
			t.Fatalf("element %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

func none(int, int) float64 { return 0 }

func shapeOf(queries, keys, size, value int) Shape {
	return Shape{Queries: queries, Keys: keys, Size: size, Value: value}
}

var shapes = []Shape{shapeOf(1, 1, 1, 1), shapeOf(3, 5, 4, 2), shapeOf(100, 37, 16, 24), shapeOf(7, 3000, 8, 8),
	shapeOf(2, 3, 0, 2)}

func TestEqualsTheDefinition(t *testing.T) {
	for _, s := range shapes {
		r := rand.New(rand.NewPCG(1, 2))
		q, k, v := random(r, s.Queries*s.Size), random(r, s.Keys*s.Size), random(r, s.Keys*s.Value)
		want := plain(s, q, k, v, 0.25, none)
		single, double := head[float32](s, q, k, v), head[float64](s, q, k, v)
		run(2, s, Options[float32]{Scale: 0.25}, single)
		run(2, s, Options[float64]{Scale: 0.25}, double)
		wantNear(t, single.Y, want, 1e-5)
		wantNear(t, double.Y, want, 1e-12)
	}
}

func TestWorkersAreBitIdentical(t *testing.T) {
	s := shapeOf(500, 300, 16, 8)
	var first []float32
	for _, workers := range []int{1, 2, 5} {
		r := rand.New(rand.NewPCG(3, 4))
		var heads []Head[float32]
		for range 3 {
			heads = append(heads, head[float32](s, random(r, s.Queries*s.Size), random(r, s.Keys*s.Size),
				random(r, s.Keys*s.Value)))
		}
		run(workers, s, Options[float32]{Scale: 1}, heads...)
		all := slices.Concat(heads[0].Y, heads[1].Y, heads[2].Y)
		if first == nil {
			first = all
		}
		if !slices.Equal(all, first) {
			t.Errorf("%d workers are not bit-identical to 1", workers)
		}
	}
}

func TestKeyRangeEqualsMask(t *testing.T) {
	s := shapeOf(300, 400, 8, 4)
	r := rand.New(rand.NewPCG(5, 6))
	q, k, v := random(r, s.Queries*s.Size), random(r, s.Keys*s.Size), random(r, s.Keys*s.Value)
	window := func(i int) (int, int) { return i - 20, i + 5 }
	want := plain(s, q, k, v, 1, func(i, j int) float64 {
		if from, to := window(i); j < from || j >= to {
			return math.Inf(-1)
		}
		return 0
	})
	h := head[float32](s, q, k, v)
	h.KeyRange = window
	run(2, s, Options[float32]{Scale: 1}, h)
	wantNear(t, h.Y, want, 1e-5)
}

// A causal shape has more blocks, each of which computes fewer keys, with the same result.
func TestCausalBlocks(t *testing.T) {
	for _, n := range []int{5, 128, 500} {
		s := shapeOf(n, n+3, 32, 4)
		r := rand.New(rand.NewPCG(9, 10))
		h := head[float32](s, random(r, s.Queries*s.Size), random(r, s.Keys*s.Size), random(r, s.Keys*s.Value))
		h.KeyRange = func(i int) (int, int) { return 0, i + 4 }
		run(2, s, Options[float32]{Scale: 1}, h)
		want := slices.Clone(h.Y)
		few := partsOf[float32](s).blocks
		s.Causal = true
		clear(h.Y)
		run(2, s, Options[float32]{Scale: 1}, h)
		if !slices.Equal(h.Y, want) {
			t.Errorf("%d queries: the results of causal blocks differ", n)
		}
		if many := partsOf[float32](s).blocks; n == 128 && (few != 1 || many != 3) {
			t.Errorf("%d blocks, %d if causal", few, many)
		}
	}
}

func TestMaskReceivesItsScores(t *testing.T) {
	s := shapeOf(100, 70, 4, 4)
	r := rand.New(rand.NewPCG(7, 8))
	q, k, v := random(r, s.Queries*s.Size), random(r, s.Keys*s.Size), random(r, s.Keys*s.Value)
	bias := func(i, j int) float64 { return float64((i*7+j*3)%11) / 4 }
	want := plain(s, q, k, v, 1, func(i, j int) float64 {
		if j >= 10+i {
			return math.Inf(-1)
		}
		return bias(i, j)
	})
	h := head[float32](s, q, k, v)
	h.KeyRange = func(i int) (int, int) { return 0, 10 + i }
	h.Mask = func(scores []float32, query, key int) {
		for j := range scores {
			scores[j] += float32(bias(query, key+j))
		}
	}
	run(2, s, Options[float32]{Scale: 1}, h)
	wantNear(t, h.Y, want, 1e-5)
}

func TestQueryWithoutKeysGivesZerosOrNaN(t *testing.T) {
	s := shapeOf(2, 3, 1, 1)
	hide := func(scores []float32, query, _ int) {
		if query == 0 {
			fill(scores, -inf[float32]())
		}
	}
	for _, zeros := range []bool{true, false} {
		h := head[float32](s, []float64{1, 1}, []float64{1, 1, 1}, []float64{3, 4, 5})
		h.Mask = hide
		run(1, s, Options[float32]{Scale: 1, Zeros: zeros}, h)
		if y := h.Y[0]; zeros && y != 0 || !zeros && y == y {
			t.Errorf("zeros %v: got %v", zeros, y)
		}
		wantNear(t, h.Y[1:], []float64{4}, 1e-6)
	}
}

func TestProbeShowsEachStage(t *testing.T) {
	s := shapeOf(1, 2, 1, 1)
	inf := math.Inf(-1)
	for stage, want := range map[Stage][]float64{
		Raw: {2, 6}, Capped: {2 * math.Tanh(1), 2 * math.Tanh(3)}, Masked: {2 * math.Tanh(1), inf}, Weights: {1, 0},
	} {
		h := head[float64](s, []float64{1}, []float64{1, 3}, []float64{5, 7})
		h.KeyRange = func(int) (int, int) { return 0, 1 }
		h.Probe = make([]float64, 2)
		run(1, s, Options[float64]{Scale: 2, Cap: 2, Stage: stage}, h)
		for j := range want {
			if g := h.Probe[j]; g != want[j] && !(math.Abs(g-want[j]) < 1e-12) {
				t.Errorf("stage %d: got %v, want %v", stage, h.Probe, want)
			}
		}
	}
}

// A sink is a key whose value is zero: with scores 0, 0 and sink 0 each weight is a third.
func TestSink(t *testing.T) {
	s := shapeOf(1, 2, 1, 1)
	h := head[float32](s, []float64{0}, []float64{1, 1}, []float64{3, 6})
	h.Sink = []float32{0}
	run(1, s, Options[float32]{Scale: 1}, h)
	wantNear(t, h.Y, []float64{3}, 1e-6)
}

func TestScaleOfZeroIsZero(t *testing.T) {
	s := shapeOf(1, 2, 1, 1)
	h := head[float32](s, []float64{9}, []float64{1, -7}, []float64{3, 6})
	run(1, s, Options[float32]{}, h)
	wantNear(t, h.Y, []float64{4.5}, 1e-6)
}

// Memory is linear in the number of tokens.
func TestWorkIsLinear(t *testing.T) {
	at := func(tokens int) int64 { return Work[float32](shapeOf(tokens, tokens, 64, 64), 12, 2) }
	if a, b := at(1<<14), at(1<<17); b > 8*a {
		t.Errorf("8 times the tokens use %d bytes, %d before", b, a)
	}
}

// Padding to whole vectors does not change weights, and does not write after the memory of a row.
func TestPaddedRowsHaveTheSameWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 0))
	for n := range 40 {
		for spare := range 10 {
			row := append(to[float32](random(r, n)), 1, 2, 3, 4, 5, 6, 7, 8, 9)
			want, after := make([]float32, n), slices.Clone(row[n+spare:])
			kernel.Softmax(want, row[:n])
			got := padded(row[:n:n+spare], singles().lanes)
			kernel.Softmax(got, got)
			if !slices.Equal(got[:n], want) || !slices.Equal(row[n+spare:], after) {
				t.Errorf("%d scores in memory of %d: got %v, want %v, and %v after it", n, n+spare, got[:n], want,
					after)
			}
		}
	}
}
