package weightonly

import (
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/solve"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// BlockOptions are the options of blockwise quantization.
type BlockOptions struct {
	Bits         int
	Block        int  // block size; 0 for whole columns
	PerChannel   bool // whole columns, whatever the block size
	WeightType   string
	Symmetric    bool
	Search, Algo string // empty if not given
	Form         Form
	GPTQ         GPTQ
}

// blockTypes are the quantized data types by width: signed and unsigned, the first opset whose DequantizeLinear
// supports blocks of them, and the capabilities of runtimes that use them: Cast, products after DequantizeLinear, and
// MatMulNBits.
var blockTypes = map[int]struct {
	Signed, Unsigned   ir.DType
	opset              int64
	cast, fused, nbits pass.Capability
}{
	2: {ir.Int2, ir.Uint2, 25, pass.Cast2, pass.Fused2, pass.NBits2},
	4: {ir.Int4, ir.Uint4, 21, pass.Cast4, pass.Fused4, pass.NBits4},
	8: {ir.Int8, ir.Uint8, 21, 0, pass.Fused8, pass.NBits8},
}

// unsigned reports whether the quantized data type is.
func (o *BlockOptions) unsigned() bool { return strings.HasPrefix(o.WeightType, "u") }

// size is the block size, 0 for whole columns.
func (o *BlockOptions) size() int {
	if o.PerChannel {
		return 0
	}
	return int(o.Block)
}

// rounder is the rounding algorithm, and its rule for scales.
func (o *BlockOptions) rounder() (spec.Rounder, spec.ScaleRule) {
	switch {
	case o.Algo == "hqq":
		return rounderBy(solve.HQQ), spec.Free
	case o.Search == minMaxSearch:
		return rounderBy(solve.Nearest), spec.Covering
	}
	return rounderBy(solve.MSE), spec.LeastError
}

func rounderBy(by func(*solve.Quantized, []float32)) spec.Rounder {
	return func(c *solve.Quantized, w []float32, _, _ int) error {
		by(c, w)
		return nil
	}
}

// layout divides a matrix into blocks of size rows, or whole columns. Packed values are
// bytes that hold several ones, unsigned.
func (o *BlockOptions) layout(rows, cols, size int64, packed bool) *spec.BlockLayout {
	if size == 0 || size > rows {
		size = max(1, rows)
	}
	b := &spec.BlockLayout{Rows: rows, Cols: cols, Bits: o.Bits}
	b.Rounder, b.Scales = o.rounder()
	b.Spec = solve.Spec{High: 1<<o.Bits - 1, Symmetric: o.Symmetric, Block: int(size)}
	b.DType = blockTypes[o.Bits].Unsigned
	switch half := int32(1) << (o.Bits - 1); {
	case packed && o.Bits < 8:
		b.DType = ir.Uint8
	case !o.unsigned():
		b.Spec.Low, b.Spec.High, b.DType = -half, half-1, blockTypes[o.Bits].Signed
	}
	return b
}

// The forms of products with blockwise weights: the first one that the target runs, not slower than float;
// DequantizeLinear before them; or ONNX Runtime's own MatMulNBits, which works at every opset and supports float zero
// points.
const (
	AutoForm     = "auto"
	StandardForm = "dequantizelinear"
	NBitsForm    = "matmulnbits"
)

// Form is the form of products.
type Form struct {
	Name          string // empty if not given
	AccuracyLevel int64  // MatMulNBits' accuracy_level
}

// usesNBits reports whether products become MatMulNBits.
func (o *BlockOptions) usesNBits() bool { return o != nil && o.Form.Name == NBitsForm }

// dequantizes reports whether products are requested to have DequantizeLinear.
func (o *BlockOptions) dequantizes() bool { return o != nil && o.Form.Name == StandardForm }
