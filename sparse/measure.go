package sparse

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/ir"
)

// A statistics is a tensor that was read once, or twice where blocks are requested: what
// the sizes of its forms depend on.
type statistics struct {
	tensor
	escapes [len(gapWidths)]int64 // that gaps of each width need
	block   Block
	blocks  int64 // of that size with any value; -1 where no form has blocks
}

// measure reads t, whose matrix has the given number of rows, see tensor. block is zero where no form has blocks.
func measure(ctx context.Context, e *ir.Eval, t *ir.Tensor, rows int64, block Block) (statistics, error) {
	m := statistics{tensor: tensor{Spec: t.Spec, rows: rows}, block: block, blocks: -1}
	r, err := e.Open(ctx, t)
	if err != nil {
		return m, err
	}
	// Quantized weights with a zero point of 128 have no zeros. All other types leave out zero.
	if t.DType.Bits() == 8 {
		if m.fill, err = mostFrequent(ctx, r, t.Bytes()); err != nil {
			return m, err
		}
	}
	last := int64(-1)
	err = m.eachBlock(ctx, r, func(_, mask []byte, first int64) error {
		for i := range ones(mask) {
			m.count(first + i - last)
			last = first + i
		}
		return nil
	})
	if err != nil || block == (Block{}) {
		return m, err
	}
	m.blocks = 0
	err = bsrOf(m.tensor, block, 0).eachBlock(ctx, r, func(int64, []byte) error {
		m.blocks++
		return nil
	})
	return m, err
}

// count counts a value at a distance of gap from the one before.
func (m *statistics) count(gap int64) {
	m.nnz++
	if gap < 1<<gapWidths[0] { // as most are
		return
	}
	for i, w := range gapWidths {
		if top := int64(1)<<w - 1; gap > top {
			m.escapes[i] += (gap - 1) / top
		}
	}
}

// mostFrequent is the byte that appears most often in the first n of r, the smallest of
// several.
func mostFrequent(ctx context.Context, r io.ReaderAt, n int64) (byte, error) {
	var counts histogram
	if err := ir.Copy(ctx, &counts, r, n); err != nil {
		return 0, err
	}
	top := 0
	for b, k := range counts {
		if k > counts[top] {
			top = b
		}
	}
	return byte(top), nil
}

// A histogram counts the bytes that are written to it.
type histogram [256]int64

func (h *histogram) Write(p []byte) (int, error) {
	for _, b := range p {
		h[b]++
	}
	return len(p), nil
}
