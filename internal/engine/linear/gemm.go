package linear

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// gemms are Gemm and com.microsoft's FusedGemm, which has an activation.
func gemms() []op.Op {
	row := op.Op{Shape: gemmShape, Run: runMatMul, Work: matMulWork, Prepare: prepareMatMul, States: matMulStates(),
		Decodes: decodes, Arrange: arrange}
	fused := row
	row.Since, fused.Since = 7, 1
	return append(sameRow(row, []ir.OpID{{Type: "Gemm"}}),
		sameRow(fused, []ir.OpID{{Domain: microsoft, Type: "FusedGemm"}})...)
}

// gemmShape is ONNX Gemm's: Y = alpha·A'·B' + beta·C, where C broadcasts to M×N.
func gemmShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if err := valid(in); err != nil {
		return nil, err
	}
	p, err := productOf(n, in)
	if err != nil {
		return nil, err
	}
	a, b := in[0], in[1]
	if len(a.Shape) != 2 || len(b.Shape) != 2 {
		return nil, fmt.Errorf("inputs A %s and B %s must both be matrices", a, b)
	}
	if c := op.Opt(in, 2); c != nil {
		if c.DType != a.DType {
			return nil, fmt.Errorf("inputs A and C have different types %s and %s", a.DType, c.DType)
		}
		if s, err := op.BroadcastShapes(c.Shape, p.out); err != nil || !slices.Equal(s, p.out) {
			return nil, fmt.Errorf("input C %s does not broadcast to %d×%d", c, p.M, p.N)
		}
	}
	if n.Has("activation") && a.DType != ir.Float && !half(a.DType) {
		return nil, fmt.Errorf("fused activations support float only, got %s", a.DType)
	}
	_, err = activationOf(n)
	return []ir.Spec{{DType: a.DType, Shape: p.out}}, err
}

// broadcastMatrix is a tensor of rank 0 to 2 as an M×N matrix: axes of size 1 broadcast.
func broadcastMatrix[T any](data []T, shape []int64) gemm.Matrix[T] {
	m := gemm.Matrix[T]{Data: data}
	if r := len(shape); r >= 1 && shape[r-1] > 1 {
		m.Col = 1
	}
	if len(shape) == 2 && shape[0] > 1 {
		m.Row = int(shape[1])
	}
	return m
}
