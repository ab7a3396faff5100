package prune

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// checkThreshold holds th against the definition of the k-th smallest by counting, which
// needs no sorting: exactly k elements are below it, or equal and before its end,
// and some of these are equal.
func checkThreshold(t *testing.T, x []float32, k int64, th threshold) {
	t.Helper()
	below, equal := int64(0), int64(0)
	for i, v := range x {
		b := uint64(math.Float32bits(v) &^ (1 << 31))
		if b < th.key {
			below++
		} else if b == th.key && int64(i) < th.end {
			equal++
		}
	}
	if below+equal != k || equal == 0 {
		t.Errorf("rank %d: %d elements below %#x, %d of it before %d", k, below, th.key, equal, th.end)
	}
}

// floats is a tensor of float32.
func floats(name string, x []float32) *ir.Tensor {
	return &ir.Tensor{Spec: ir.Spec{Name: name, DType: ir.Float, Shape: []int64{int64(len(x))}},
		Source: ir.Mem(kernel.Bytes(x))}
}

// manyKinds are what brackets, buckets and ties can meet.
var manyKinds = []struct {
	name string
	next func(r *rand.Rand, i int) float32
}{
	{"normal", func(r *rand.Rand, _ int) float32 { return float32(r.NormFloat64()) }},
	{"constant", func(*rand.Rand, int) float32 { return -0.1 }},
	{"zero", func(*rand.Rand, int) float32 { return 0 }},
	{"mostly zero", func(r *rand.Rand, _ int) float32 { return float32(max(0, r.IntN(10)-8)) * r.Float32() }},
	{"sixteen values", func(r *rand.Rand, _ int) float32 { return float32(r.IntN(31) - 15) }},
	{"ascending", func(_ *rand.Rand, i int) float32 { return float32(i) }},
	{"wide", func(r *rand.Rand, _ int) float32 { return float32(math.Exp(r.NormFloat64() * 10)) }},
	{"all bits", func(r *rand.Rand, _ int) float32 { return math.Float32frombits(r.Uint32() & 0xbf7fffff) }},
}

func TestThresholdOfManyElements(t *testing.T) {
	x, mem := make([]float32, 5<<20+12345), &buffers{}
	fractions := []float64{1e-7, 0.01, 0.3, 0.5, 0.9, 1}
	if testing.Short() {
		fractions = fractions[2:3]
	}
	for _, kind := range manyKinds {
		t.Run(kind.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for i := range x {
				x[i] = kind.next(r, i)
			}
			a, b := len(x)/3, len(x)/3+7
			ts := []*ir.Tensor{floats("a", x[:a]), floats("b", x[a:b]), floats("c", x[b:])}
			for _, fraction := range fractions {
				p, err := newRanking(t.Context(), newBench(t).step, mem, ts...)
				if err != nil {
					t.Fatal(err)
				}
				k := max(prunedCount(fraction, int64(len(x))), 1)
				b, err := p.bracketOf(t.Context(), k)
				if err != nil {
					t.Fatal(err)
				}
				th, err := p.search(t.Context(), k, b)
				if err != nil {
					t.Fatal(err)
				}
				checkThreshold(t, x, k, th)
				if p.passes > 2 { // locating a tie reads a part only, once
					t.Errorf("fraction %v: %d passes", fraction, p.passes)
				}
			}
		})
	}
}

// The key of a single element is that of its tensor, also next to the tensor's ends.
func TestKeysOfSingleElements(t *testing.T) {
	x := []float32{1, -2, 3, 4, -5, 6, 7, 8}
	p, err := newRanking(t.Context(), newBench(t).step, &buffers{}, floats("a", x[:3]), floats("b", x[3:4]),
		floats("c", x[4:]))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range x {
		got, err := p.key(int64(i))
		if want := uint64(math.Float32bits(float32(math.Abs(float64(v))))); err != nil || got != want {
			t.Errorf("element %d has key %#x, want %#x (%v)", i, got, want, err)
		}
	}
}

// A bracket that holds none of the requested ranks costs a pass and changes nothing.
func TestThresholdDoesNotDependOnTheGuess(t *testing.T) {
	x := make([]float32, 300_000)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	p, err := newRanking(t.Context(), newBench(t).step, &buffers{}, floats("x", x))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []bracket{{0, 0}, {math.MaxInt32, math.MaxInt32}, {0x3f000000, 0x3f400000}} {
		for _, k := range []int64{1, 70_000, 150_000, 299_999, 300_000} {
			th, err := p.search(t.Context(), k, b)
			if err != nil {
				t.Fatal(err)
			}
			checkThreshold(t, x, k, th)
		}
	}
}

func TestThresholdIsTheSameForAnyWorkers(t *testing.T) {
	x := make([]float32, 20*pass.Block)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range x {
		x[i] = float32(r.IntN(1000))
	}
	var first threshold
	for _, workers := range []int{1, 2, 8} {
		b := newBench(t)
		b.step.Env.Workers = workers
		p, err := newRanking(t.Context(), b.step, &buffers{}, floats("x", x))
		if err != nil {
			t.Fatal(err)
		}
		th, err := p.threshold(t.Context(), int64(len(x)/3))
		if err != nil {
			t.Fatal(err)
		}
		if workers == 1 {
			first = th
			checkThreshold(t, x, int64(len(x)/3), th)
		}
		if th != first {
			t.Errorf("%d workers: got %v, want %v", workers, th, first)
		}
	}
}

// A loop repeats a block of memory: a payload of any size that costs what a file in the page
// cache costs.
type loop struct{ block []byte }

func (l loop) ReadAt(p []byte, off int64) (int, error) {
	for n := 0; n < len(p); {
		n += copy(p[n:], l.block[(off+int64(n))%int64(len(l.block)):])
	}
	return len(p), nil
}

func benchTensor(elems int64) *ir.Tensor {
	r := rand.New(rand.NewPCG(7, 8))
	var block []byte
	for range 1 << 24 {
		block = binary.LittleEndian.AppendUint32(block, math.Float32bits(float32(r.NormFloat64())))
	}
	return &ir.Tensor{Spec: ir.Spec{Name: "w", DType: ir.Float, Shape: []int64{elems}}, Source: ir.Span{R: loop{block}}}
}

// BenchmarkGlobalThreshold finds the median magnitude of a billion elements; BenchmarkCopy
// reads them once, which is what cat does.
func BenchmarkGlobalThreshold(b *testing.B) {
	t := benchTensor(1 << 30)
	b.SetBytes(t.Bytes())
	s := newBench(b).step
	for b.Loop() {
		p, err := newRanking(b.Context(), s, &buffers{}, t)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.threshold(b.Context(), t.Elems()/2); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(p.passes), "passes")
	}
}

func BenchmarkCopy(b *testing.B) {
	t := benchTensor(1 << 30)
	b.SetBytes(t.Bytes())
	s := newBench(b).step
	for b.Loop() {
		r, err := s.Eval.Open(b.Context(), t)
		if err != nil {
			b.Fatal(err)
		}
		if err := ir.Copy(b.Context(), io.Discard, r, t.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
