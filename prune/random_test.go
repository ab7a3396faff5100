package prune

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/ir"
)

// draw prunes n ones and returns what is left.
func draw(t *testing.T, name string, dt ir.DType, n int, workers int, options ...string) []float64 {
	b := newBench(t)
	b.step.Env.Workers = workers
	w := b.weight(name, dt, []int64{int64(n), 1}, slices.Repeat([]float64{1}, n)...)
	b.node("MatMul", []*ir.Value{nil, w})
	b.run(randomMethod, options...)
	return b.values(w)
}

func zeros(values []float64) (n int64) {
	for _, v := range values {
		if v == 0 {
			n++
		}
	}
	return n
}

func TestRandomPrunesExactlyTheFraction(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dt := rapid.SampledFrom(floatTypes).Draw(r, "type")
		n := rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(1, 5000)).Draw(r, "n")
		a := drawAmount(r)
		want := prunedCount(a, int64(n))
		if got := zeros(draw(t, "w", dt, n, 2, "amount", text(a))); got != want {
			r.Errorf("%v of %d: got %d, want %d", a, n, got, want)
		}
	})
}

func TestRandomDependsOnSeedNameAndIndexOnly(t *testing.T) {
	const n = 600_000 // several blocks
	first := draw(t, "w", ir.Float, n, 1, "amount", "0.3")
	if got := zeros(first); got != 180_000 {
		t.Errorf("got %d zeros, want 180000", got)
	}
	for _, workers := range []int{2, 8} {
		if !slices.Equal(first, draw(t, "w", ir.Float, n, workers, "amount", "0.3")) {
			t.Errorf("%d workers give other elements", workers)
		}
	}
	if !slices.Equal(first, draw(t, "w", ir.Double, n, 2, "amount", "0.3")) {
		t.Error("another type gives other elements")
	}
	if slices.Equal(first, draw(t, "w", ir.Float, n, 2, "amount", "0.3", "seed", "1")) {
		t.Error("another seed gives the same elements")
	}
	if slices.Equal(first, draw(t, "v", ir.Float, n, 2, "amount", "0.3")) {
		t.Error("another name gives the same elements")
	}
}

// A fair draw takes about as many from each tenth of the indices: 5σ are 460 here. And a
// larger fraction prunes the elements of a smaller one, and more.
func TestRandomIsFairAndGrows(t *testing.T) {
	const n = 300_000
	few, many := draw(t, "w", ir.Float, n, 2, "amount", "0.4"), draw(t, "w", ir.Float, n, 2, "amount", "0.6")
	for i := range 10 {
		if got := zeros(few[i*n/10 : (i+1)*n/10]); got < 12_000-460 || got > 12_000+460 {
			t.Errorf("tenth %d: %d zeros, want about 12000", i, got)
		}
	}
	for i := range few {
		if few[i] == 0 && many[i] != 0 {
			t.Fatalf("element %d is pruned at 0.4 and kept at 0.6", i)
		}
	}
}

func TestMissedBracketIsWidened(t *testing.T) {
	l := newScores(3, "", "w")
	s := newBench(t).step
	var all []uint64
	for i := range int64(1000) {
		all = append(all, l.of(i))
	}
	slices.Sort(all)
	if d := slices.Compact(slices.Clone(all)); len(d) != len(all) {
		t.Error("two indices have the same lot")
	}
	for k := int64(1); k < 1000; k++ {
		got, err := l.smallest(t.Context(), s, k, 1000)
		if err != nil || got != all[k-1] {
			t.Fatalf("rank %d: got %#x, %v, want %#x", k, got, err, all[k-1])
		}
	}
}

func TestRandomKeepsTheBitsOfWhatStays(t *testing.T) {
	b := newBench(t)
	values := []float64{math.Copysign(0, -1), 1e-40, -3, 65504, 0.1, 7, 8, 9}
	w := b.weight("w", ir.Float, []int64{8, 1}, values...)
	b.node("MatMul", []*ir.Value{nil, w})
	before := b.bytes(w)
	b.run(randomMethod)
	after := b.bytes(w)
	fallen := 0
	for i := 0; i < len(before); i += 4 {
		if bytes.Equal(after[i:i+4], make([]byte, 4)) {
			fallen++
		} else if !bytes.Equal(after[i:i+4], before[i:i+4]) {
			t.Errorf("element %d changed", i/4)
		}
	}
	if fallen < 4 {
		t.Errorf("%d pruned, want 4", fallen)
	}
}
