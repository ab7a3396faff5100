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

// lots gives every index of a tensor a number of 64 bits. No two indices have the same, as
// scramble is a bijection and golden is odd: ranks need no rule for ties.
type lots struct{ base uint64 }

const golden = 0x9e3779b97f4a7c15

func newLots(seed uint64, scope, name string) lots {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", scope, name)
	return lots{scramble(h.Sum64() + scramble(seed+golden))}
}

func (l lots) of(i int64) uint64 { return scramble(l.base + uint64(i)*golden) }

// zero zeroes the elements in b, from index first on, whose lot is not above last. It has no
// branch on the lot, which could not be predicted.
func (l lots) zero(b []byte, dt ir.DType, first int64, last uint64) {
	switch dt.Bits() {
	case 16:
		zeroLots(kernel.Words[uint16](b), l, first, last)
	case 64:
		zeroLots(kernel.Words[uint64](b), l, first, last)
	default:
		zeroLots(kernel.Words[uint32](b), l, first, last)
	}
}

func zeroLots[T uint16 | uint32 | uint64](x []T, l lots, first int64, last uint64) {
	for i := range x {
		_, above := bits.Sub64(last, l.of(first+int64(i)), 0)
		x[i] &= -T(above)
	}
}

// smallest is the k-th smallest of the first n lots, 1 ≤ k ≤ n. Lots are spread evenly, so
// it lies close to k/n of their range: one walk counts those below a bracket around it and
// keeps those inside, about 20 √n. A bracket that misses is widened.
func (l lots) smallest(c *pass.Context, k, n int64) (uint64, error) {
	if k == n {
		return math.MaxUint64, nil
	}
	share := float64(k) / float64(n)
	for margin := 10*math.Sqrt(share*(1-share)/float64(n)) + 10/float64(n); ; margin *= 2 {
		b := bracket{lotAt(share - margin), lotAt(share + margin)}
		below, kept, err := l.filter(c, n, b)
		if err != nil {
			return 0, err
		}
		if i := k - 1 - below; i >= 0 && i < int64(len(kept)) {
			slices.Sort(kept)
			return kept[i], nil
		}
	}
}

// lotAt is the number at that share of the range.
func lotAt(share float64) uint64 {
	switch {
	case share <= 0:
		return 0
	case share >= 1:
		return math.MaxUint64
	}
	return uint64(share * (1 << 63) * 2)
}

// filter counts the lots below b and returns those inside, in no order.
func (l lots) filter(c *pass.Context, n int64, b bracket) (below int64, kept []uint64, err error) {
	var mu sync.Mutex
	parts := (n + pass.Block - 1) / pass.Block
	err = c.Parallel(int(parts), func(ctx context.Context, i int) error {
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

func (l lots) part(from, to int64, b bracket) (below int64, kept []uint64) {
	for i := from; i < to; i++ {
		lot := l.of(i)
		_, less := bits.Sub64(lot, b.lo, 0)
		below += int64(less)
		if lot-b.lo <= b.hi-b.lo {
			kept = append(kept, lot)
		}
	}
	return below, kept
}
