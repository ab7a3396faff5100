package weights

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// takesCodes are the operators whose integer constants are weights that somebody
// quantized before.
var ReadsQuantized = map[string]bool{
	"DequantizeLinear": true,
	"MatMulInteger":    true,
	"ConvInteger":      true,
	"QLinearMatMul":    true,
	"QLinearConv":      true,
	"MatMulNBits":      true,
	"QGemm":            true,
}

// noteQuantized gives weights that are quantized already their rows.
func SkipQuantized(c *pass.Context) {
	for g := range c.Model.Graphs() {
		for _, v := range g.Consts() {
			readers := pass.Readers(v)
			if v.Const.DType.IsFloat() || len(v.Const.Shape) == 0 || len(readers) == 0 {
				continue
			}
			if ReadsQuantized[readers[0].Op.Type] && v.Const.DType != ir.Int32 && len(v.Const.Shape) > 1 {
				c.Skip(v, readers, "it is quantized already")
			}
		}
	}
}
