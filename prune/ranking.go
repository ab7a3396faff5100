package prune

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A pool is the tensors whose elements are ranked together, one after the other: a
// position counts through all of them.
type pool struct {
	c       *pass.Context
	tensors []*ir.Tensor
	readers []io.ReaderAt
	starts  []int64 // position of each tensor's first element; the total at the end
	wide    bool    // some tensor is float64: see keys
	scratch *scratch
	unsound []atomic.Bool // tensors in which a pass met NaN or infinities
	passes  int           // times the whole of it was read
}

// newPool opens ts. Pools that are used one after the other may share a scratch.
func newPool(c *pass.Context, s *scratch, ts ...*ir.Tensor) (*pool, error) {
	p := &pool{c: c, scratch: s, tensors: ts, starts: []int64{0}, unsound: make([]atomic.Bool, len(ts))}
	for i, t := range ts {
		r, err := c.Eval.Open(c, t)
		if err != nil {
			return nil, err
		}
		p.readers = append(p.readers, r)
		p.starts = append(p.starts, p.starts[i]+t.Elems())
		p.wide = p.wide || t.DType == ir.Double
	}
	return p, nil
}

// total is the number of elements.
func (p *pool) total() int64 { return p.starts[len(p.tensors)] }

// stripes is how many equal parts the pool is read in: enough for any number of workers.
func (p *pool) stripes() int64 {
	return min(max(p.total()/pass.Block, 1), maxStripes)
}

const maxStripes = 64

// keyBlock is how many elements are ranked at a time: two kernels run over them, and with
// what they keep they should stay in a core's second-level cache.
const keyBlock = 1 << 16

// stripe is the positions of part i.
func (p *pool) stripe(i int64) (from, to int64) {
	n, s := p.total(), p.stripes()
	return n/s*i + n%s*i/s, n/s*(i+1) + n%s*(i+1)/s
}

// blocks hands the elements at positions from..to to do in order: block by block, with the
// position of its first element.
func (p *pool) blocks(ctx context.Context, from, to int64, do func(k keys, at int64) error) error {
	k := p.scratch.keys(p.wide)
	defer p.scratch.putKeys(k)
	for i := 0; i < len(p.tensors); i++ {
		end := min(to, p.starts[i+1])
		for from < end {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(end-from, keyBlock)
			if err := k.load(p.readers[i], p.tensors[i], from-p.starts[i], n); err != nil {
				return fmt.Errorf("tensor %q: %w", p.tensors[i].Name, err)
			}
			if !k.finite() {
				p.unsound[i].Store(true)
			}
			if err := do(k, from); err != nil {
				return err
			}
			from += n
		}
	}
	return nil
}

// everything reads the whole pool, its stripes in parallel.
func (p *pool) everything(do func(ctx context.Context, stripe int64) error) error {
	p.passes++
	return p.c.Parallel(int(p.stripes()), func(ctx context.Context, i int) error { return do(ctx, int64(i)) })
}

// sound reports whether no pass met NaN or infinities.
func (p *pool) sound() bool {
	for i := range p.unsound {
		if p.unsound[i].Load() {
			return false
		}
	}
	return true
}

// unfit is why a weight with NaN or infinities is left alone: they have no rank.
const unfit = "it holds NaN or infinities"

// check reports whether t is free of NaN and infinities, by reading it.
func check(c *pass.Context, t *ir.Tensor) (bool, error) {
	p, err := newPool(c, &scratch{}, t)
	if err != nil {
		return false, err
	}
	err = p.everything(func(ctx context.Context, s int64) error {
		from, to := p.stripe(s)
		return p.blocks(ctx, from, to, func(keys, int64) error { return nil })
	})
	return p.sound(), err
}
