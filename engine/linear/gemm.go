package linear

import (
	"fmt"

	"github.com/mcompress/mcompress/engine/activation"
	"github.com/mcompress/mcompress/engine/gemm"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// gemmShape is ONNX Gemm's: Y = alpha·A'·B' + beta·C, where C broadcasts to M×N.
func gemmShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Arg(in, 0, "A")
	if err != nil {
		return nil, err
	}
	b, err := op.Arg(in, 1, "B")
	if err != nil {
		return nil, err
	}
	if len(a.Shape) != 2 || len(b.Shape) != 2 {
		return nil, fmt.Errorf("inputs A %s and B %s are not both matrices", a, b)
	}
	if a.DType != b.DType || !multiplies(a.DType) {
		return nil, fmt.Errorf("inputs A and B are %s and %s", a.DType, b.DType)
	}
	p, err := productOf(n, a, b)
	if err != nil {
		return nil, err
	}
	if c := op.Opt(in, 2); c != nil {
		if c.DType != a.DType {
			return nil, fmt.Errorf("inputs A and C are %s and %s", a.DType, c.DType)
		}
		if s, err := op.BroadcastShapes(c.Shape, []int64{int64(p.m), int64(p.n)}); err != nil || len(s) != 2 || s[0] != int64(p.m) || s[1] != int64(p.n) {
			return nil, fmt.Errorf("input C %s does not broadcast to %d×%d", c, p.m, p.n)
		}
	}
	return []ir.Spec{{DType: a.DType, Shape: []int64{int64(p.m), int64(p.n)}}}, nil
}

func runGemm(c *op.Call) error {
	p, err := productOf(c.Node, c.In[0], c.In[1])
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	switch c.In[0].DType {
	case ir.Float:
		var bias []float32
		if b := c.Opt(2); b != nil {
			bias = ir.View[float32](b)
		}
		return p.gemm(c, ir.View[float32](c.In[0]), ir.View[float32](c.In[1]), bias, ir.View[float32](c.Out[0]), c.Work)
	case ir.Float16, ir.BFloat16:
		return p.halfGemm(c)
	case ir.Double:
		plainGemm[float64](c, p)
	case ir.Int32:
		plainGemm[int32](c, p)
	case ir.Int64:
		plainGemm[int64](c, p)
	case ir.Uint32:
		plainGemm[uint32](c, p)
	case ir.Uint64:
		plainGemm[uint64](c, p)
	}
	return nil
}

func (p *product) halfGemm(c *op.Call) error {
	return inFloats(c, func(a, b, out []float32, work []byte) error {
		var bias []float32
		if cc := c.Opt(2); cc != nil {
			bias = floatsOf(cc)
		}
		return p.gemm(c, a, b, bias, out, work)
	})
}

func (p *product) gemm(c *op.Call, a, b, bias, out []float32, work []byte) error {
	act, err := activation.Of(c.Text("activation", ""), c.Floats("activation_params"))
	if err != nil {
		return err
	}
	f := gemm.FloatProduct{A: matrix(a, p.m, p.k, p.transA), C: out, Stride: p.n}
	if packed, _ := c.State.([]*gemm.PackedFloat); packed != nil {
		f.Packed = packed[0]
	} else {
		f.B = matrix(b, p.k, p.n, p.transB)
	}
	alpha, beta := c.Float("alpha", 1), c.Float("beta", 1)
	f.Epilogue = gemm.Epilogue{Alpha: alpha, Beta: beta, Activate: act}
	if bias != nil && beta != 0 {
		f.Epilogue.Bias = spread(bias, c.In[2].Shape)
	}
	if alpha == 0 {
		f.A = gemm.Matrix[float32]{Data: make([]float32, 1)} // an Alpha of 0 means 1 to package gemm
	}
	gemm.Float(c.Pool, gemm.Shape{M: p.m, N: p.n, K: p.k}, work, f)
	return nil
}

// spread is a tensor of rank 0 to 2 as an M×N matrix: axes of size 1 repeat.
func spread[T any](data []T, shape []int64) gemm.Matrix[T] {
	m := gemm.Matrix[T]{Data: data}
	if r := len(shape); r >= 1 && shape[r-1] > 1 {
		m.Col = 1
	}
	if len(shape) == 2 && shape[0] > 1 {
		m.Row = int(shape[1])
	}
	return m
}

func plainGemm[T gemm.Number](c *op.Call, p *product) {
	out := ir.View[T](c.Out[0])
	plain[T](c, p)
	alpha, beta := T(c.Float("alpha", 1)), T(c.Float("beta", 1))
	var bias gemm.Matrix[T]
	if b := c.Opt(2); b != nil {
		bias = spread(ir.View[T](b), b.Shape)
	}
	for i := range p.m {
		for j := range p.n {
			y := &out[i*p.n+j]
			*y *= alpha
			if bias.Data != nil {
				*y += beta * bias.Data[i*bias.Row+j*bias.Col]
			}
		}
	}
}

func floatsOf(a *ir.Array) []float32 {
	x := make([]float32, a.Elems())
	widen(x, a)
	return x
}
