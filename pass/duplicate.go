package pass

import (
	"bytes"
	"context"
	"crypto/sha256"
	"sync"

	"github.com/mcompress/mcompress/ir"
)

// sampleBytes is how much of a payload is compared before two whole ones are.
const sampleBytes = 64 << 10

// A kind is what equal tensors have in common before they are read: they stand in
// one graph, as a branch cannot see the other's constants.
type kind struct {
	g    *ir.Graph
	spec string
}

func kindOf(v *ir.Value) kind { return kind{v.Graph(), v.Const.Spec.String()} }

// Duplicates maps each value to the first one in vs with the same graph, type, shape
// and payload: itself, if there is none. Tensors that are not alone of their kind are
// sampled; only those whose samples agree are read in full.
func (c *Context) Duplicates(vs []*ir.Value) (map[*ir.Value]*ir.Value, error) {
	first := make(map[*ir.Value]*ir.Value, len(vs))
	count := map[kind]int{}
	for _, v := range vs {
		first[v] = v
		count[kindOf(v)]++
	}
	bySample, err := c.samples(vs, count)
	if err != nil {
		return nil, err
	}
	for _, v := range vs {
		for _, w := range bySample[v] {
			if w == v {
				break
			}
			same, err := c.same(v.Const, w.Const)
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

// samples gives each value that is not alone of its kind the values whose samples
// equal its own, in order, itself among them.
func (c *Context) samples(vs []*ir.Value, count map[kind]int) (map[*ir.Value][]*ir.Value, error) {
	type key struct {
		kind
		sum [sha256.Size]byte
	}
	sums := make([]key, len(vs))
	var mu sync.Mutex
	err := c.Parallel(len(vs), func(ctx context.Context, i int) error {
		if count[kindOf(vs[i])] == 1 {
			return nil
		}
		sum, err := c.sample(ctx, vs[i].Const)
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

// sample digests the first bytes of t: weights that differ at all differ there.
func (c *Context) sample(ctx context.Context, t *ir.Tensor) (sum [sha256.Size]byte, err error) {
	r, err := c.Eval.Open(ctx, t)
	if err != nil {
		return sum, err
	}
	b := make([]byte, min(t.Bytes(), sampleBytes))
	if err := ir.ReadFull(r, b, 0); err != nil {
		return sum, err
	}
	return sha256.Sum256(b), nil
}

// same compares two payloads of one size in full.
func (c *Context) same(a, b *ir.Tensor) (bool, error) {
	ra, err := c.Eval.Open(c, a)
	if err != nil {
		return false, err
	}
	rb, err := c.Eval.Open(c, b)
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
			return false, c.Err()
		}
	}
	return true, nil
}
