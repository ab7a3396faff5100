package pass

import (
	"bytes"
	"context"
	"crypto/sha256"
	"sync"

	"github.com/mcompress/mcompress/ir"
)

// sampleBytes is the size of the part of a payload that is compared first.
const sampleBytes = 64 << 10

// A kind is the graph, type and shape of a tensor. Only tensors of one kind are compared: constants of one branch are not
// visible in the other.
type kind struct {
	g    *ir.Graph
	spec string
}

func kindOf(v *ir.Value) kind { return kind{v.Graph(), v.Const.Spec.String()} }

// Duplicates maps each value to the first one in vs with the same graph, type, shape
// and payload, or to itself. A tensor that is the only one of its kind is not read; tensors with equal samples are
// read in full.
func Duplicates(ctx context.Context, e *ir.Eval, workers int, vs []*ir.Value) (map[*ir.Value]*ir.Value, error) {
	first := make(map[*ir.Value]*ir.Value, len(vs))
	count := map[kind]int{}
	for _, v := range vs {
		first[v] = v
		count[kindOf(v)]++
	}
	bySample, err := samples(ctx, e, workers, vs, count)
	if err != nil {
		return nil, err
	}
	for _, v := range vs {
		for _, w := range bySample[v] {
			if w == v {
				break
			}
			same, err := same(ctx, e, v.Const, w.Const)
			if err != nil {
				return nil, err
			}
			if same {
				first[v] = first[w]
				break
			}
		}
	}
	return first, nil
}

// samples maps each value that is not the only one of its kind to the values with an equal sample, in order, itself
// included.
func samples(ctx context.Context, e *ir.Eval, workers int, vs []*ir.Value, count map[kind]int) (map[*ir.Value][]*ir.Value, error) {
	type key struct {
		kind
		sum [sha256.Size]byte
	}
	sums := make([]key, len(vs))
	var mu sync.Mutex
	err := Parallel(ctx, workers, len(vs), func(ctx context.Context, i int) error {
		if count[kindOf(vs[i])] == 1 {
			return nil
		}
		sum, err := sample(ctx, e, vs[i].Const)
		mu.Lock()
		defer mu.Unlock()
		sums[i] = key{kindOf(vs[i]), sum}
		return err
	})
	if err != nil {
		return nil, err
	}
	groups := map[key][]*ir.Value{}
	for i, v := range vs {
		if sums[i].g != nil {
			groups[sums[i]] = append(groups[sums[i]], v)
		}
	}
	out := map[*ir.Value][]*ir.Value{}
	for i, v := range vs {
		if sums[i].g != nil {
			out[v] = groups[sums[i]]
		}
	}
	return out, nil
}

// sample is the digest of the first bytes of t, in which different weights nearly always differ.
func sample(ctx context.Context, e *ir.Eval, t *ir.Tensor) (sum [sha256.Size]byte, err error) {
	r, err := e.Open(ctx, t)
	if err != nil {
		return sum, err
	}
	b := make([]byte, min(t.Bytes(), sampleBytes))
	if err := ir.ReadFull(r, b, 0); err != nil {
		return sum, err
	}
	return sha256.Sum256(b), nil
}

// same reports whether two payloads of equal size are equal.
func same(ctx context.Context, e *ir.Eval, a, b *ir.Tensor) (bool, error) {
	ra, err := e.Open(ctx, a)
	if err != nil {
		return false, err
	}
	rb, err := e.Open(ctx, b)
	if err != nil {
		return false, err
	}
	x, y := make([]byte, ir.CopyBuffer), make([]byte, ir.CopyBuffer)
	for off := int64(0); off < a.Bytes(); off += ir.CopyBuffer {
		n := min(ir.CopyBuffer, a.Bytes()-off)
		if err := ir.ReadFull(ra, x[:n], off); err != nil {
			return false, err
		}
		if err := ir.ReadFull(rb, y[:n], off); err != nil {
			return false, err
		}
		if !bytes.Equal(x[:n], y[:n]) {
			return false, ctx.Err()
		}
	}
	return true, nil
}
