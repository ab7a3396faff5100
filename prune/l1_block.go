package prune

import (
	"context"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// L1Block zeroes the blocks of smallest L1 norm in each weight, as a matrix: the first dimension by the rest, outputs
// by inputs·kernel of a convolution, directions·gates·hidden by inputs of a recurrent layer. Blocks at the lower and
// right edge may be smaller. Of equal norms the block of lower index is pruned first, row by row of blocks. Block CSR
// does not store the zeroed blocks.
//
// Norms are sums in float64, added in the order of the payload.
type L1Block struct {
	pass.Selection
	// Amount is the fraction of the blocks of each weight that is pruned, above 0 up to 1, or None; 0 is the default.
	Amount Amount `flag:"amount" default:"0.5" usage:"'fraction' of the blocks that is pruned, from 0 to 1"`
	// Amounts are other fractions for some weights, from 0 to 1.
	Amounts Amounts `flag:"amounts" list:"yes" usage:"other fractions by glob over the names of tensors, nodes and modules, as 'pattern=fraction',...; the last match counts"`
	// Block is the shape of the blocks that are pruned as a whole.
	Block pass.BlockSize `flag:"block" default:"16" usage:"side of a block, or 'ROWSxCOLS'"`
	// Embeddings prunes tables that Gather looks up, too.
	Embeddings bool `flag:"embeddings" usage:"prune tables that Gather looks up, too"`
}

var l1BlockMethod = &pass.Method{
	Name:    "l1-block",
	Command: "prune",
	Doc:     "zero the blocks of smallest L1 norm in each weight, for block CSR",
	Stage:   pass.Prune,
	New:     func() pass.Options { return &L1Block{} },
}

// Method describes the method.
func (L1Block) Method() *pass.Method { return l1BlockMethod }

// Check reports amounts that are not fractions.
func (o L1Block) Check() error { return o.fraction().check() }

func (o L1Block) fraction() fraction { return fraction{o.Amount, o.Amounts} }

// Run implements pass.Options.
func (o L1Block) Run(ctx context.Context, step *pass.Step) error {
	return pruneParts(ctx, step, weights(step, o.Embeddings), o.choose)
}

// blocks are the blocks of a weight and those that are pruned.
type blocks struct {
	wholeParts
	size         pass.BlockSize
	cols, across int64
}

func (b *blocks) detail() string {
	return fmt.Sprintf("%d of %d blocks of %dx%d", b.count, len(b.pruned), b.size.Rows, b.size.Cols)
}

func (o L1Block) choose(ctx context.Context, step *pass.Step, s *buffers, w *weight) (*blocks, error) {
	rows := pass.MatrixRows(w.before.Shape, w.consumers)
	b := &blocks{size: o.Block, cols: w.before.Elems() / rows}
	down, across := o.Block.Grid(rows, b.cols)
	b.across, b.count = across, o.fraction().count(w.v, w.consumers, down*across)
	if b.count == 0 {
		b.trouble = pass.Reason{Code: pass.RoundsToZero, Detail: fmt.Sprintf("%d blocks", down*across)}
		return b, nil
	}
	norms := make([]float64, down*across)
	p, err := newRanking(ctx, step, s, w.before)
	if err != nil {
		return nil, err
	}
	err = p.blocks(ctx, 0, p.total(), func(k keys, at int64) error {
		switch k := k.(type) {
		case *narrowKeys:
			addBlockNorms(b, k.x, at, norms)
		case *wideKeys:
			addBlockNorms(b, k.x, at, norms)
		}
		return nil
	})
	if !p.isFinite() {
		b.trouble = notFinite
	}
	b.pruned = smallest(norms, b.count)
	return b, err
}

func addBlockNorms[T float32 | float64](b *blocks, x []T, first int64, norms []float64) {
	b.runs(first, int64(len(x)), func(block, from, to int64) {
		sum := norms[block]
		for _, v := range x[from:to] {
			sum += math.Abs(float64(v))
		}
		norms[block] = sum
	})
}

// runs cuts n elements from first on into runs from..to within one row of one block.
func (b *blocks) runs(first, n int64, do func(block, from, to int64)) {
	row, col := first/b.cols, first%b.cols
	for from := int64(0); from < n; {
		k := col / b.size.Cols
		to := min(from+min((k+1)*b.size.Cols, b.cols)-col, n)
		do(row/b.size.Rows*b.across+k, from, to)
		if col += to - from; col == b.cols {
			row, col = row+1, 0
		}
		from = to
	}
}

// zero implements parts.
func (b *blocks) zero(dt ir.DType) func(p []byte, first int64) error {
	size := dt.Bits() / 8
	return func(p []byte, first int64) error {
		b.runs(first, int64(len(p))/size, func(block, from, to int64) {
			if b.pruned[block] {
				clear(p[from*size : to*size])
			}
		})
		return nil
	}
}
