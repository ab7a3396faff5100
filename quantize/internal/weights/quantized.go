package weights

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// ReadsQuantized are the operators whose integer constants are quantized weights.
var ReadsQuantized = map[string]bool{
	"DequantizeLinear": true,
	"MatMulInteger":    true,
	"ConvInteger":      true,
	"QLinearMatMul":    true,
	"QLinearConv":      true,
	"MatMulNBits":      true,
	"QGemm":            true,
}

// SkipQuantized adds ledger rows of weights that are quantized already.
func SkipQuantized(c *pass.Context) {
	for g := range c.Model.Graphs() {
		for _, v := range g.Consts() {
			consumers := pass.Readers(v)
			if v.Const.DType.IsFloat() || len(v.Const.Shape) == 0 || len(consumers) == 0 {
				continue
			}
			if ReadsQuantized[consumers[0].Op.Type] && v.Const.DType != ir.Int32 && len(v.Const.Shape) > 1 {
				c.Skip(v, consumers, "it is quantized already")
			}
		}
	}
}
