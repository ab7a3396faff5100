package prune

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"sync"
)

// A bracket is a range of keys, both ends included.
type bracket struct{ lo, hi uint64 }

// Counters bound the memory of a pass: a table has fine buckets of one key each if the
// bracket has no more than maxFine keys, else coarse ones, which the next pass refines.
// 2^16 coarse counters stay in a core's second-level cache.
const (
	maxFine   = 1 << 20
	maxCoarse = 1 << 16
	counters  = 1 << 22 // of all tables of one pass together: 16 MiB
)

// A histogram counts the keys inside a bracket, separately for groups of neighbouring
// stripes, so that the place of a tie is looked for in one group only.
type histogram struct {
	bracket
	shift   uint
	buckets int
	stripes int64
	groups  []group
}

type group struct {
	mu     sync.Mutex
	counts []uint32
	below  int64
}

func (p *ranking) histogram(b bracket) *histogram {
	h := &histogram{bracket: b, stripes: p.parts()}
	last := b.hi - b.lo
	if last >= maxFine {
		h.shift = uint(bits.Len64(last / maxCoarse))
	}
	h.buckets = int(last>>h.shift) + 1
	// A counter must not overflow, however many elements there are.
	n := max(counters/int64(h.buckets), p.total()>>31+1)
	h.groups = make([]group, min(n, h.stripes))
	counts := p.scratch.take(len(h.groups) * h.buckets)
	for i := range h.groups {
		h.groups[i].counts = counts[i*h.buckets : (i+1)*h.buckets]
	}
	return h
}

// group is the group that stripe s belongs to.
func (h *histogram) group(s int64) int64 { return s * int64(len(h.groups)) / h.stripes }

// tally counts the keys of the pool inside b, in one pass.
func (p *ranking) tally(ctx context.Context, b bracket) (*histogram, error) {
	h := p.histogram(b)
	err := p.everything(ctx, func(ctx context.Context, s int64) error {
		counts := p.scratch.table(h.buckets)
		defer p.scratch.put(counts)
		below := int64(0)
		from, to := p.part(s)
		err := p.blocks(ctx, from, to, func(k keys, _ int64) error {
			n, _ := k.filter(h.lo, h.hi)
			k.tally(counts, h.lo, h.shift)
			below += int64(n)
			return nil
		})
		// After an error, too: the table goes back as zeros.
		h.groups[h.group(s)].add(counts, below)
		return err
	})
	return h, err
}

// add moves counts into g.
func (g *group) add(counts []uint32, below int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, n := range counts {
		g.counts[i] += n
	}
	clear(counts)
	g.below += below
}

// find is the bucket of the element of rank k, counted from 1, and its rank within the bucket. ok is false where it is
// outside of the bracket.
func (h *histogram) find(k int64) (bucket int, rank int64, ok bool) {
	for i := range h.groups {
		k -= h.groups[i].below
	}
	if k < 1 {
		return 0, 0, false
	}
	for b := range h.buckets {
		n := int64(0)
		for i := range h.groups {
			n += int64(h.groups[i].counts[b])
		}
		if k <= n {
			return b, k, true
		}
		k -= n
	}
	return 0, 0, false
}

// A threshold is the element of some rank: its key, and a position after it with no equal element in between.
type threshold struct {
	key uint64
	end int64
}

// threshold finds the k-th smallest element, 1 ≤ k ≤ total, equal ones in the order of their
// positions. The result does not depend on the number of workers. Many elements of float32
// are read once or twice, and a part of them once more to locate a tie. The result means
// nothing if some elements are not finite.
func (p *ranking) threshold(ctx context.Context, k int64) (threshold, error) {
	b, err := p.sampledBracket(ctx, k)
	if err != nil {
		return threshold{}, err
	}
	return p.search(ctx, k, b)
}

// all is the bracket of every key.
func (p *ranking) all() bracket { return bracket{0, 1<<keyBits(p.wide) - 1} }

// search looks inside b first, then, if the element is not there, everywhere.
func (p *ranking) search(ctx context.Context, k int64, b bracket) (threshold, error) {
	for {
		h, err := p.tally(ctx, b)
		if err != nil || !p.isFinite() {
			return threshold{}, err
		}
		bucket, rank, ok := h.find(k)
		switch {
		case !ok:
			b = p.all()
		case h.shift > 0:
			lo := b.lo + uint64(bucket)<<h.shift
			b = bracket{lo, min(lo+1<<h.shift-1, b.hi)}
		default:
			return p.locate(ctx, h, bucket, rank)
		}
	}
}

// locate finds the place of the element of the given rank among those of one key.
func (p *ranking) locate(ctx context.Context, h *histogram, bucket int, rank int64) (threshold, error) {
	i := 0
	for ; rank > int64(h.groups[i].counts[bucket]); i++ {
		rank -= int64(h.groups[i].counts[bucket])
	}
	key := h.lo + uint64(bucket)
	from, to := p.extent(h, i)
	if rank == int64(h.groups[i].counts[bucket]) {
		return threshold{key, to}, nil // what is left of the group holds no other one
	}
	end := int64(0)
	err := p.blocks(ctx, from, to, func(k keys, at int64) error {
		if _, n := k.filter(key, key); rank > int64(n) {
			rank -= int64(n)
			return nil
		}
		end = at + k.nth(key, rank) + 1
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return threshold{key, end}, err
}

// errFound ends a walk over blocks.
var errFound = errors.New("found")

// extent is the positions of group i.
func (p *ranking) extent(h *histogram, i int) (from, to int64) {
	from = -1
	for s := range h.stripes {
		if h.group(s) != int64(i) {
			continue
		}
		a, b := p.part(s)
		if from < 0 {
			from = a
		}
		to = b
	}
	return from, to
}

// masks are the masks of the tensors below t.
func (p *ranking) masks(t threshold) []mask {
	cs := make([]mask, len(p.tensors))
	for i, x := range p.tensors {
		ties := min(max(t.end-p.starts[i], 0), x.Elems())
		cs[i] = maskFromKey(t.key, ties, x.DType, p.wide)
	}
	return cs
}

// value is the magnitude of t.
func (p *ranking) value(t threshold) float64 {
	if p.wide {
		return math.Float64frombits(t.key)
	}
	return float64(math.Float32frombits(uint32(t.key)))
}
