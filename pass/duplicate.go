package pass

import (
	"context"
	"crypto/sha256"
	"math"

	"github.com/mcompress/mcompress/ir"
)

// sampleBytes is the size of the part of a payload that is compared first.
const sampleBytes = 64 << 10

// A content is the graph, type and shape of a tensor, and the digest of the bytes that were read, if any. Only tensors
// of one content are compared: constants of one branch are not visible in the other.
type content struct {
	g    *ir.Graph
	spec string
	sum  [sha256.Size]byte
}

// Duplicates maps each value to the first one in vs with the same graph, type, shape
// and payload, or to itself. A tensor that is the only one of its type and shape is not read; tensors with equal
// samples are read in full, once.
func Duplicates(ctx context.Context, e *ir.Eval, workers int, vs []*ir.Value) (map[*ir.Value]*ir.Value, error) {
	contents := make([]content, len(vs))
	for i, v := range vs {
		contents[i] = content{g: v.Graph(), spec: v.Const.Spec.String()}
	}
	// Samples first: weights of one shape nearly always differ in them, so that few are read as a whole. Digests, as
	// comparisons in pairs take quadratic time.
	for _, limit := range []int64{sampleBytes, math.MaxInt64} {
		if err := extend(ctx, e, workers, vs, contents, limit); err != nil {
			return nil, err
		}
	}
	first := make(map[*ir.Value]*ir.Value, len(vs))
	of := map[content]*ir.Value{}
	for i, v := range vs {
		// The first one in the order of vs, so that names of results do not depend on workers.
		if of[contents[i]] == nil {
			of[contents[i]] = v
		}
		first[v] = of[contents[i]]
	}
	return first, nil
}

// extend sets the digests of the contents that several tensors have, to those of up to limit bytes. Tensors of up to
// sampleBytes are read as samples.
func extend(ctx context.Context, e *ir.Eval, workers int, vs []*ir.Value, contents []content, limit int64) error {
	count := map[content]int{}
	for _, c := range contents {
		count[c]++
	}
	var several []int
	for i, c := range contents {
		// The digest of a tensor up to sampleBytes is that of all of it already.
		if count[c] > 1 && (limit == sampleBytes || vs[i].Const.Bytes() > sampleBytes) {
			several = append(several, i)
		}
	}
	return Parallel(ctx, workers, len(several), func(ctx context.Context, k int) (err error) {
		i := several[k]
		contents[i].sum, err = digest(ctx, e, vs[i].Const, limit)
		return err
	})
}

// digest is the digest of up to limit bytes of t. The first ones nearly always tell different weights apart.
func digest(ctx context.Context, e *ir.Eval, t *ir.Tensor, limit int64) (sum [sha256.Size]byte, err error) {
	r, err := e.Open(ctx, t)
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	if err := ir.Copy(ctx, h, r, min(t.Bytes(), limit)); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
