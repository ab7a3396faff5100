package quantize

import (
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// blockOptions say how weights are rounded in blocks.
type BlockOptions struct {
	Bits         int
	Block        int  // 0 for whole columns
	PerChannel   bool // columns, whatever the block
	WeightType   string
	Symmetric    bool
	Search, Algo string // empty where they were not given
	Form         Form
	GPTQ         GPTQ
}

// The codes by width: signed and unsigned, and the first opset whose DequantizeLinear has blocks of them.
var blockTypes = map[int]struct {
	signed, unsigned ir.DType
	opset            int64
}{
	2: {ir.Int2, ir.Uint2, 25},
	4: {ir.Int4, ir.Uint4, 21},
	8: {ir.Int8, ir.Uint8, 21},
}

// defaultBlock is how many rows share a scale unless it is said.
const defaultBlock = 32

// asked reports whether one of the shared options was given.
func (o *BlockOptions) Given() bool {
	return o.Block > 0 || o.Search != "" || o.Algo != "" || o.Form.Name != ""
}

// unsigned reports whether codes are.
func (o *BlockOptions) unsigned() bool { return strings.HasPrefix(o.WeightType, "u") }

// size is the rows of a block, 0 for whole columns.
func (o *BlockOptions) size() int {
	if o.PerChannel {
		return 0
	}
	return int(o.Block)
}

// rounder is what the options ask for.
func (o *BlockOptions) rounder() Rounder {
	by := solve.Balanced
	switch {
	case o.Algo == "hqq":
		by = solve.HQQ
	case o.Search == "span":
		by = solve.Nearest
	}
	return Rounder{Round: func(c *solve.Codes, w []float32) error {
		by(c, w)
		return nil
	}}
}

// blocking cuts a matrix into blocks of size rows, or whole columns. Codes that the file's types do not have are packed by
// hand, and unsigned.
func (o *BlockOptions) layout(rows, cols, size int64, packed bool) *BlockLayout {
	if size == 0 || size > rows {
		size = max(1, rows)
	}
	b := &BlockLayout{Rows: rows, Cols: cols, Bits: o.Bits, Rounder: o.rounder()}
	b.Spec = solve.Grid{High: 1<<o.Bits - 1, Symmetric: o.Symmetric, Block: int(size)}
	b.DType = blockTypes[o.Bits].unsigned
	switch half := int32(1) << (o.Bits - 1); {
	case packed && o.Bits < 8:
		b.DType = ir.Uint8
	case !o.unsigned():
		b.Spec.Low, b.Spec.High, b.DType = -half, half-1, blockTypes[o.Bits].signed
	}
	return b
}

// blockOptionsOf is o, where one of it was given, with what s says beside it.
func blockOptionsOf(s QuantSpec, o *BlockOptions) *BlockOptions {
	if !o.Given() {
		return nil
	}
	b := *o
	b.WeightType, b.Symmetric = s.DType().String(), s.Symmetric
	return &b
}
