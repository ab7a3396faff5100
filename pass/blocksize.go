package pass

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A BlockSize is the rows and columns of a block of a matrix; as a flag 16 or 16x8.
type BlockSize struct{ Rows, Cols int64 }

// MaxBlock is the longest side of a block: one is held in memory.
const MaxBlock = 256

// String is the size as Set takes it, empty for none.
func (b *BlockSize) String() string {
	switch {
	case *b == (BlockSize{}):
		return ""
	case b.Rows == b.Cols:
		return strconv.FormatInt(b.Rows, 10)
	}
	return fmt.Sprintf("%dx%d", b.Rows, b.Cols)
}

// Set parses a side or ROWSxCOLS.
func (b *BlockSize) Set(s string) error {
	r, c, both := strings.Cut(s, "x")
	if !both {
		c = r
	}
	rows, err := strconv.ParseInt(r, 10, 64)
	cols, err2 := strconv.ParseInt(c, 10, 64)
	if err != nil || err2 != nil || min(rows, cols) < 1 || max(rows, cols) > MaxBlock {
		return fmt.Errorf("%q is not a block size: give a side, or ROWSxCOLS, up to %d", s, MaxBlock)
	}
	*b = BlockSize{rows, cols}
	return nil
}

// Grid is the number of blocks down and across a matrix; those at its lower and right edge may be partly outside.
func (b BlockSize) Grid(rows, cols int64) (down, across int64) {
	return (rows + b.Rows - 1) / b.Rows, (cols + b.Cols - 1) / b.Cols
}

// MatrixRows is the number of rows of a weight as a matrix: its first dimension, or directions·gates·hidden if a
// recurrent layer is among its consumers; 1 for a vector.
func MatrixRows(shape []int64, consumers []*ir.Node) int64 {
	switch {
	case len(shape) < 2:
		return 1
	// Weights of LSTM, GRU and RNN are directions × gates·hidden × inputs: as matrices of directions rows, a
	// recurrent weight would be one row.
	case slices.ContainsFunc(consumers, IsRecurrent):
		return ir.Spec{Shape: shape[:len(shape)-1]}.Elems()
	}
	return shape[0]
}

// IsRecurrent reports whether n is a recurrent layer.
func IsRecurrent(n *ir.Node) bool { return operator.Of(n).Precision == operator.RecurrentState }
