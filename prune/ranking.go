package prune

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A ranking is the tensors whose elements are ranked together, one after the other: a
// position counts through all of them.
type ranking struct {
	step      *pass.Step
	tensors   []*ir.Tensor
	inputs    []io.ReaderAt
	starts    []int64 // position of each tensor's first element; the total at the end
	wide      bool    // some tensor is float64: see keys
	scratch   *buffers
	nonFinite []atomic.Bool // tensors in which a pass found NaN or infinities
	passes    int           // times the whole of it was read
}

// newRanking opens ts. Rankings that are used one after the other may share buffers.
func newRanking(ctx context.Context, step *pass.Step, s *buffers, ts ...*ir.Tensor) (*ranking, error) {
	p := &ranking{step: step, scratch: s, tensors: ts, starts: []int64{0}, nonFinite: make([]atomic.Bool, len(ts))}
	for i, t := range ts {
		r, err := step.Eval.Open(ctx, t)
		if err != nil {
			return nil, err
		}
		p.inputs = append(p.inputs, r)
		p.starts = append(p.starts, p.starts[i]+t.Elems())
		p.wide = p.wide || t.DType == ir.Double
	}
	return p, nil
}

// total is the number of elements.
func (p *ranking) total() int64 { return p.starts[len(p.tensors)] }

// parts is the number of equal parts that are read in parallel: enough for any number of workers.
func (p *ranking) parts() int64 {
	return min(max(p.total()/pass.Block, 1), maxStripes)
}

const maxStripes = 64

// keyBlock is how many elements are ranked at a time: two kernels run over them, and with
// what they keep they should stay in a core's second-level cache.
const keyBlock = 1 << 16

// part is the positions of part i.
func (p *ranking) part(i int64) (from, to int64) {
	n, s := p.total(), p.parts()
	return n/s*i + n%s*i/s, n/s*(i+1) + n%s*(i+1)/s
}

// blocks calls do for the elements at positions from..to in order, block by block, with the position of the first
// element.
func (p *ranking) blocks(ctx context.Context, from, to int64, do func(k keys, at int64) error) error {
	k := p.scratch.keys(p.wide)
	defer p.scratch.putKeys(k)
	for i := 0; i < len(p.tensors); i++ {
		end := min(to, p.starts[i+1])
		for from < end {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(end-from, keyBlock)
			if err := k.load(p.inputs[i], p.tensors[i], from-p.starts[i], n); err != nil {
				return fmt.Errorf("tensor %q: %w", p.tensors[i].Name, err)
			}
			if !k.finite() {
				p.nonFinite[i].Store(true)
			}
			if err := do(k, from); err != nil {
				return err
			}
			from += n
		}
	}
	return nil
}

// everything reads all tensors, their parts in parallel.
func (p *ranking) everything(ctx context.Context, do func(ctx context.Context, stripe int64) error) error {
	p.passes++
	return pass.Parallel(ctx, p.step.Env.Workers, int(p.parts()), func(ctx context.Context, i int) error {
		return do(ctx, int64(i))
	})
}

// isFinite reports whether no pass found NaN or infinities.
func (p *ranking) isFinite() bool {
	for i := range p.nonFinite {
		if p.nonFinite[i].Load() {
			return false
		}
	}
	return true
}

// notFinite is the reason of weights with NaN or infinities, which have no rank.
var notFinite = pass.Reason{Code: pass.NotFinite, Detail: "NaN or infinities"}

// check reports whether t is free of NaN and infinities, by reading it.
func check(ctx context.Context, step *pass.Step, t *ir.Tensor) (bool, error) {
	p, err := newRanking(ctx, step, &buffers{}, t)
	if err != nil {
		return false, err
	}
	err = p.everything(ctx, func(ctx context.Context, s int64) error {
		from, to := p.part(s)
		return p.blocks(ctx, from, to, func(keys, int64) error { return nil })
	})
	return p.isFinite(), err
}
