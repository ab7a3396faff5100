package quant

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// The input indices of the operands.
var (
	matMulInteger = operandInputs{a: 0, b: 1, aZero: 2, bZero: 3}
	qLinearMatMul = operandInputs{a: 0, b: 3, aZero: 2, bZero: 5}
	integerFloat  = operandInputs{a: 0, b: 1, aZero: 4, bZero: 5}
	dynamicMatMul = operandInputs{a: 0, b: 1, aZero: -1, bZero: 3}
	qGemm         = operandInputs{a: 0, b: 3, aZero: 2, bZero: 5}
)

// integerProducts are the quantized matrix products.
func integerProducts() []op.Op {
	return []op.Op{
		matMulInteger.row("", "MatMulInteger", 10, false, integerShape, multiply),
		qLinearMatMul.row("", "QLinearMatMul", 10, true, qLinearShape, runQLinearMatMul),
		integerFloat.row(microsoft, "MatMulIntegerToFloat", 1, true, toFloatShape, multiplyToFloat),
		qGemm.row(microsoft, "QGemm", 1, true, qGemmShape, multiplyGemm),
		dynamicMatMulRow(microsoft, "DynamicQuantizeMatMul"),
		// The fused forms of MatMulInteger, Cast, Mul by the product of both scales, Add of the bias, and an
		// activation: the second one after a DynamicQuantizeLinear that other products read too, the first one with its
		// own.
		dynamicMatMulRow("mcompress", "QuantizedMatMul"),
		integerFloat.row("mcompress", "MatMulIntegerToFloat", 1, true, toFloatShape, multiplyToFloat),
	}
}

// weightStates are the types of packed weights.
func weightStates() []any { return []any{[]*gemm.PackedInt(nil), (*spmm.Matrix)(nil)} }

// row is an operator that multiplies. finish means that its sums are post-processed.
func (w operandInputs) row(domain, name string, since int64, finish bool, shape shapeOf,
	run func(c *op.Call, p *product) error) op.Op {
	return op.Op{
		Domain: domain, Type: name, Since: since, Prepare: w.prepare, States: weightStates(),
		Shape: func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
			p, err := productOf(n, in, w)
			if err != nil {
				return nil, err
			}
			if !isByte(in[w.a].DType) {
				return nil, fmt.Errorf("input A is %s, want int8 or uint8", in[w.a])
			}
			return shape(n, in, p)
		},
		Work: func(n *op.Node, in []*ir.Array, workers int) int64 {
			p, err := productOf(n, in, w)
			if err != nil {
				return 0
			}
			return p.work(n, in, workers, finish)
		},
		Run: func(c *op.Call) error {
			p, err := productOf(c.Node, c.In, w)
			if err != nil || c.Out[0].Elems() == 0 {
				return err
			}
			return run(c, p)
		},
	}
}

type shapeOf func(n *op.Node, in []*ir.Array, p *product) ([]ir.Spec, error)

func integerShape(_ *op.Node, _ []*ir.Array, p *product) ([]ir.Spec, error) {
	s := ir.Spec{DType: ir.Int32, Shape: p.shape}
	return []ir.Spec{s}, s.Valid()
}

// multiplyStored multiplies A without conversion.
func (p *product) multiplyStored(c *op.Call, to []int32, finish finisher) error {
	aZero, err := zeros(optional(c.In, p.aZero))
	if err != nil {
		return err
	}
	a := c.In[p.a]
	return p.run(c, a.Data, a.DType == ir.Int8, aZero, c.Work, to, finish)
}

func multiply(c *op.Call, p *product) error {
	return p.multiplyStored(c, ir.View[int32](c.Out[0]), nil)
}

func qLinearShape(_ *op.Node, in []*ir.Array, p *product) ([]ir.Spec, error) {
	if err := requireInputs(in, input{1, "a_scale"}, input{4, "b_scale"}, input{6, "y_scale"},
		input{7, "y_zero_point"}); err != nil {
		return nil, err
	}
	if err := p.checkScales(in[1], in[4], in[6]); err != nil {
		return nil, err
	}
	if !isByte(in[7].DType) || in[7].Elems() != 1 {
		return nil, fmt.Errorf("input y_zero_point is %s, want one int8 or uint8", in[7])
	}
	s := ir.Spec{DType: in[7].DType, Shape: p.shape}
	return []ir.Spec{s}, s.Valid()
}

// checkScales checks the scales of A, per-tensor or per row, of B, per-tensor or per column, and of the result.
func (p *product) checkScales(a, b, y *ir.Array) error {
	for _, s := range []struct {
		name string
		*ir.Array
		each int
	}{{"A", a, p.rows}, {"B", b, p.N}, {"the result", y, 1}} {
		if s.Array == nil {
			continue
		}
		if s.Kind != ir.Dense || !isScale(s.DType) || s.Elems() != 1 && s.Elems() != int64(s.each) {
			return fmt.Errorf("the scale of %s is %s, want one float or %d", s.name, s.Array, s.each)
		}
	}
	return nil
}

func runQLinearMatMul(c *op.Call, p *product) error {
	s, err := p.scales(c.In[1], c.In[4], c.In[6], 1)
	if err != nil {
		return err
	}
	zero, err := integers(c.In[7])
	if err != nil {
		return err
	}
	return p.multiplyStored(c, nil, p.quantizeTo(c.Out[0], s, zero[0]))
}

// scales are the factors of the sums of a row, per column: alpha·a·b/y, rounded after each step.
type scales struct {
	alpha, y float32
	a, b     []float32
	n        int       // columns
	shared   []float32 // common to all rows, nil if A has a scale per row
}

func (p *product) scales(a, b, y *ir.Array, alpha float32) (s *scales, err error) {
	s = &scales{alpha: alpha, y: 1, n: p.N}
	if s.a, err = floats(a); err != nil {
		return nil, err
	}
	if s.b, err = floats(b); err != nil {
		return nil, err
	}
	if y != nil {
		one, err := floats(y)
		if err != nil {
			return nil, err
		}
		s.y = one[0]
	}
	if len(s.a) == 1 {
		// One scale of A is usual: the factors of all rows are computed once.
		s.shared = s.of(s.a[0])
	}
	return s, nil
}

func (s *scales) row(i int) []float32 {
	if s.shared != nil {
		return s.shared
	}
	return s.of(s.a[i%len(s.a)])
}

func (s *scales) of(a float32) []float32 {
	out := slices.Repeat(s.b, s.n/len(s.b))
	kernel.MulScalar(out, out, s.alpha*a)
	kernel.DivScalar(out, out, s.y)
	return out
}

// requantize writes sums·scale, with a scale per element: rounded half to even, plus zero, saturated.
func requantize(dst []byte, sums []int32, scale []float32, zero int32, levels kernel.IntRange) {
	requantizeBlocks(dst, sums, zero, levels, func(x []float32, q []int32, at int) {
		kernel.DequantizeInt32Cols(x, q, scale[at:][:len(q)], nil)
	})
}

// requantizeRow is requantize with one scale.
func requantizeRow(dst []byte, sums []int32, scale float32, zero int32, levels kernel.IntRange) {
	requantizeBlocks(dst, sums, zero, levels, func(x []float32, q []int32, _ int) {
		kernel.DequantizeInt32(x, q, scale)
	})
}

func requantizeBlocks(dst []byte, sums []int32, zero int32, levels kernel.IntRange,
	product func(x []float32, q []int32, at int)) {
	// In pieces that stay in the L1 cache between the two kernels.
	var buf [256]float32
	for at := 0; at < len(sums); at += len(buf) {
		q := sums[at:min(at+len(buf), len(sums))]
		product(buf[:len(q)], q, at)
		kernel.Quantize(dst[at:][:len(q)], buf[:len(q)], 1, zero, levels)
	}
}
