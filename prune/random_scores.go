package prune

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// scores assigns a pseudorandom score of 64 bits to every index of a tensor; the smallest are pruned. Scores are
// distinct, as scramble is a bijection and golden is odd: ranks need no rule for ties.
type scores struct{ base uint64 }

const golden = 0x9e3779b97f4a7c15

func newScores(seed uint64, scope, name string) scores {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", scope, name)
	return scores{scramble(h.Sum64() + scramble(seed+golden))}
}

func (l scores) of(i int64) uint64 { return scramble(l.base + uint64(i)*golden) }

// zero zeroes the elements in b, from index first on, whose score is not above last. It has no
// branch on the score, which could not be predicted.
func (l scores) zero(b []byte, dt ir.DType, first int64, last uint64) {
	switch dt.Bits() {
	case 16:
		zeroUpTo(kernel.Words[uint16](b), l, first, last)
	case 64:
		zeroUpTo(kernel.Words[uint64](b), l, first, last)
	default:
		zeroUpTo(kernel.Words[uint32](b), l, first, last)
	}
}

func zeroUpTo[T uint16 | uint32 | uint64](x []T, l scores, first int64, last uint64) {
	for i := range x {
		_, above := bits.Sub64(last, l.of(first+int64(i)), 0)
		// The borrow is 1 if the score is above last: the mask has all bits set then, and none otherwise.
		x[i] &= -T(above)
	}
}

// smallest is the k-th smallest of the first n scores, 1 ≤ k ≤ n. Scores are uniform, so it is close to k/n of their
// range: one pass counts those below a bracket around it and keeps those inside, about 20 √n. A bracket that misses is
// widened.
func (l scores) smallest(ctx context.Context, s *pass.Step, k, n int64) (uint64, error) {
	if k == n {
		return math.MaxUint64, nil
	}
	fraction := float64(k) / float64(n)
	for margin := 10*math.Sqrt(fraction*(1-fraction)/float64(n)) + 10/float64(n); ; margin *= 2 {
		b := bracket{scoreAt(fraction - margin), scoreAt(fraction + margin)}
		below, kept, err := l.filter(ctx, s, n, b)
		if err != nil {
			return 0, err
		}
		if i := k - 1 - below; i >= 0 && i < int64(len(kept)) {
			slices.Sort(kept)
			return kept[i], nil
		}
	}
}

// scoreAt is the score at that fraction of the range.
func scoreAt(fraction float64) uint64 {
	switch {
	case fraction <= 0:
		return 0
	case fraction >= 1:
		return math.MaxUint64
	}
	return uint64(fraction * (1 << 63) * 2)
}

// filter counts the scores below b and returns those inside, in no order.
func (l scores) filter(ctx context.Context, s *pass.Step, n int64, b bracket) (below int64, kept []uint64, err error) {
	var mu sync.Mutex
	parts := (n + pass.Block - 1) / pass.Block
	err = pass.Parallel(ctx, s.Env.Workers, int(parts), func(ctx context.Context, i int) error {
		from := int64(i) * pass.Block
		count, some := l.part(from, min(from+pass.Block, n), b)
		mu.Lock()
		defer mu.Unlock()
		below += count
		kept = append(kept, some...)
		return ctx.Err()
	})
	return below, kept, err
}

func (l scores) part(from, to int64, b bracket) (below int64, kept []uint64) {
	for i := from; i < to; i++ {
		score := l.of(i)
		_, less := bits.Sub64(score, b.lo, 0)
		below += int64(less)
		// One comparison for both ends: unsigned differences wrap below lo.
		if score-b.lo <= b.hi-b.lo {
			kept = append(kept, score)
		}
	}
	return below, kept
}
