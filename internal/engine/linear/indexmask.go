package linear

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// An indexMask is com.microsoft's mask_index or key_padding_mask, of int32: a flag for each key, for each pair of query
// and key, for each pair of positions up to a maximum length, or the end (and the start) of the keys of each batch. It
// adds filter to masked scores.
type indexMask struct {
	index         []int32
	rank          int
	hasStarts     bool // the ends are followed by the starts
	batch         int
	queries, keys int
	filter        float32
	causal        bool
	past          int
	length        int // of a mask by positions, the maximum
}

// indexMaskOf checks the shape of a mask for this number of batches, queries and keys.
func indexMaskOf(a *ir.Array, batch, queries, keys int) (*indexMask, error) {
	m := &indexMask{rank: len(a.Shape), batch: batch, queries: queries, keys: keys}
	b, fits := int64(batch), false
	switch len(a.Shape) {
	case 1:
		m.hasStarts = a.Shape[0] == 2*b
		fits = m.hasStarts || a.Shape[0] == b || a.Shape[0] == 3*b+2
	case 2:
		fits = a.Shape[0] == b && a.Shape[1] == int64(keys)
	case 3:
		fits = a.Shape[0] == b && a.Shape[1] == int64(queries) && a.Shape[2] == int64(keys)
	case 4:
		m.length = int(a.Shape[3])
		fits = a.Shape[0] == b && a.Shape[1] == 1 && a.Shape[2] == a.Shape[3] && m.length >= keys
	}
	if !fits || a.DType != ir.Int32 {
		return nil, fmt.Errorf("the mask is %s for %d batches of %d queries and %d keys", a, batch, queries, keys)
	}
	return m, nil
}

// of is the mask of one batch.
func (m *indexMask) of(batch int) attention.Mask[float32] {
	first := m.firstMasked(batch)
	return func(scores []float32, query, key int) {
		last := len(scores)
		// Later keys have the least score, and no filter besides, whatever their flags.
		if m.causal {
			last = maskLater(scores, m.past+query, key)
		}
		if m.rank == 1 {
			from, to := m.allowed(batch)
			to = min(max(to-key, 0), last)
			// Scores start at this key: bounds are relative to it, and may be outside of them.
			from = min(max(from-key, 0), to)
			add(scores[:from], m.filter)
			add(scores[to:last], m.filter)
		} else {
			flags := m.flags(batch, query)[key:][:last]
			for j := max(first-key, 0); j < last; j++ {
				if flags[j] <= 0 {
					scores[j] += m.filter
				}
			}
		}
	}
}

// maskLater adds the least float32 to the scores of keys after a position, and returns the number of others. Scores
// start at key.
func maskLater(scores []float32, position, key int) (others int) {
	others = min(max(position+1-key, 0), len(scores))
	add(scores[others:], -math.MaxFloat32)
	return others
}

// firstMasked is a key before which no key of a batch is masked by flags, for any query.
func (m *indexMask) firstMasked(batch int) int {
	if m.rank != 2 {
		return 0
	}
	if i := slices.IndexFunc(m.flags(batch, 0), func(flag int32) bool { return flag <= 0 }); i >= 0 {
		return i
	}
	return m.keys
}

func add(scores []float32, x float32) { kernel.AddScalar(scores, scores, x) }

// allowed is the range of keys that the queries of a batch may attend to.
func (m *indexMask) allowed(batch int) (from, to int) {
	if m.hasStarts {
		from = min(int(m.index[batch+m.batch]), m.keys)
	}
	return from, int(m.index[batch])
}

// flags has a positive number for each key that a query may attend to.
func (m *indexMask) flags(batch, query int) []int32 {
	row, long := batch, m.keys
	switch m.rank {
	case 3:
		row = batch*m.queries + query
	case 4: // the queries are at the last positions
		row, long = batch*m.length+m.keys-m.queries+query, m.length
	}
	return m.index[row*long:][:m.keys]
}

// combinedMask applies two masks in order; either may be nil.
func combinedMask(a, b attention.Mask[float32]) attention.Mask[float32] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(scores []float32, query, key int) {
		a(scores, query, key)
		b(scores, query, key)
	}
}
