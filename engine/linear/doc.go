// Package linear holds the operators that multiply matrices: MatMul, Gemm and what is built
// on them.
//
// It must not know graphs or plans; the multiplication itself is engine/gemm's.
package linear

import "github.com/mcompress/mcompress/engine/op"

// Ops are the rows of this family.
func Ops() []op.Op {
	return []op.Op{
		{Type: "MatMul", Since: 1, Shape: matMulShape, Run: runMatMul, Work: matMulWork, Prepare: prepareMatMul},
		{Domain: "com.microsoft", Type: "FusedMatMul", Since: 1, Shape: matMulShape, Run: runMatMul, Work: matMulWork, Prepare: prepareMatMul},
		// Inputs A, B, bias, residual; attributes of FusedMatMul, activation and activation_params.
		{Domain: "mcompress", Type: "MatMul", Since: 1, Shape: matMulShape, Run: runMatMul, Work: matMulWork, Prepare: prepareMatMul},
		{Type: "Gemm", Since: 7, Shape: gemmShape, Run: runGemm, Work: matMulWork, Prepare: prepareMatMul},
	}
}
