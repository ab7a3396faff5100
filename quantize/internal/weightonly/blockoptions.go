package weightonly

import (
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/solve"
	"github.com/mcompress/mcompress/quantize/internal/spec"
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
var BlockTypes = map[int]struct {
	Signed, Unsigned ir.DType
	opset            int64
}{
	2: {ir.Int2, ir.Uint2, 25},
	4: {ir.Int4, ir.Uint4, 21},
	8: {ir.Int8, ir.Uint8, 21},
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
func (o *BlockOptions) rounder() spec.Rounder {
	by := solve.Balanced
	switch {
	case o.Algo == "hqq":
		by = solve.HQQ
	case o.Search == "minmax":
		by = solve.Nearest
	}
	return spec.Rounder{Round: func(c *solve.Codes, w []float32) error {
		by(c, w)
		return nil
	}}
}

// blocking cuts a matrix into blocks of size rows, or whole columns. Codes that the file's types do not have are packed by
// hand, and unsigned.
func (o *BlockOptions) layout(rows, cols, size int64, packed bool) *spec.BlockLayout {
	if size == 0 || size > rows {
		size = max(1, rows)
	}
	b := &spec.BlockLayout{Rows: rows, Cols: cols, Bits: o.Bits, Rounder: o.rounder()}
	b.Spec = solve.Grid{High: 1<<o.Bits - 1, Symmetric: o.Symmetric, Block: int(size)}
	b.DType = BlockTypes[o.Bits].Unsigned
	switch half := int32(1) << (o.Bits - 1); {
	case packed && o.Bits < 8:
		b.DType = ir.Uint8
	case !o.unsigned():
		b.Spec.Low, b.Spec.High, b.DType = -half, half-1, BlockTypes[o.Bits].Signed
	}
	return b
}

// The forms of products with weights in blocks: DequantizeLinear in front of them, or an operator of ONNX Runtime's own, for which
// every opset does, and which takes real zero points.
const (
	StandardForm = "dequantizelinear"
	NBitsForm    = "matmulnbits"
)

// A productForm is the form of products.
type Form struct {
	Name          string // empty where it was not given
	AccuracyLevel int64  // MatMulNBits' accuracy_level
}

// bitsFormed reports whether products become MatMulNBits.
func (o *BlockOptions) usesNBits() bool { return o != nil && o.Form.Name == NBitsForm }
