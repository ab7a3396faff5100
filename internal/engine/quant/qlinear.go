package quant

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// qLinearOps are ONNX Runtime's operators with quantized inputs and outputs. Rounding is as in ONNX Runtime.
func qLinearOps() []op.Op {
	return []op.Op{
		pairRow("QLinearAdd", func(a, b, c params) func(x, y float32) float32 {
			ra, rb := a.scale/c.scale, b.scale/c.scale
			// The constant part is summed once, and each product is rounded: ONNX Runtime's order, another one rounds
			// otherwise.
			fixed := float32(c.zero) - (float32(ra*float32(a.zero)) + float32(rb*float32(b.zero)))
			return func(x, y float32) float32 { return fixed + float32(x*ra) + float32(y*rb) }
		}),
		pairRow("QLinearMul", func(a, b, c params) func(x, y float32) float32 {
			ratio := a.scale * b.scale / c.scale
			za, zb, zero := float32(a.zero), float32(b.zero), float32(c.zero)
			return func(x, y float32) float32 { return float32((x-za)*(y-zb)*ratio) + zero }
		}),
		mapRow("QLinearLeakyRelu", func(n *op.Node) func(x []float32) {
			alpha := n.Float("alpha", 0.01)
			return func(x []float32) { kernel.LeakyRelu(x, x, alpha) }
		}),
		mapRow("QLinearSigmoid", func(*op.Node) func(x []float32) {
			return func(x []float32) { kernel.Sigmoid(x, x) }
		}),
		{Domain: microsoft, Type: "QLinearConcat", Since: 1, Shape: concatShape, Run: runQLinearConcat},
		{Domain: microsoft, Type: "QLinearGlobalAveragePool", Since: 1, Shape: averageAllShape, Run: globalAveragePool},
		{Domain: microsoft, Type: "QLinearAveragePool", Since: 1, Shape: averageShape, Run: averagePool},
	}
}

// params are the quantization parameters of a tensor: x = (q - zero)·scale.
type params struct {
	scale float32
	zero  int32
	dt    ir.DType
}

// triple is a quantized operand, its scale and its zero point: inputs at, at+1 and at+2.
func triple(in []*ir.Array, at int, name string) (*ir.Array, error) {
	a, err := op.Arg(in, at, name)
	if err != nil {
		return nil, err
	}
	if a.Kind != ir.Dense || !isByte(a.DType) {
		return nil, fmt.Errorf("input %s is %s, want int8 or uint8", name, a)
	}
	return a, checkParams(in, at+1, name, a.DType)
}

// checkParams checks the scale and zero point at inputs at and at+1, for quantized type dt.
func checkParams(in []*ir.Array, at int, name string, dt ir.DType) error {
	scale, err := op.Arg(in, at, name+"_scale")
	if err != nil {
		return err
	}
	if scale.DType != ir.Float || scale.Elems() != 1 {
		return fmt.Errorf("input %s_scale is %s, want one float", name, scale)
	}
	if zero := op.Opt(in, at+1); zero != nil && (zero.DType != dt || zero.Elems() != 1) {
		return fmt.Errorf("input %s_zero_point is %s, want one %s", name, zero, dt)
	}
	return nil
}

// paramsAt reads a scale and a zero point for quantized type dt.
func paramsAt(in []*ir.Array, at int, dt ir.DType) (params, error) {
	scale, err := floats(in[at])
	if err != nil {
		return params{}, err
	}
	p := params{scale: scale[0], dt: dt}
	if zero := op.Opt(in, at+1); zero != nil {
		quantized, err := integers(zero)
		if err != nil {
			return params{}, err
		}
		p.zero = quantized[0]
	}
	return p, nil
}

// values are the dequantized values of the bytes 0 to 255.
func (p params) values() *[256]float32 {
	var quantized [256]byte
	for i := range quantized {
		quantized[i] = byte(i)
	}
	values := new([256]float32)
	p.dequantize(values[:], quantized[:])
	return values
}

// quantize quantizes numbers.
func (p params) quantize(dst []byte, x []float32) {
	kernel.Quantize(dst, x, p.scale, p.zero, rangeOfType(p.dt))
}

// dequantize dequantizes values.
func (p params) dequantize(dst []float32, quantized []byte) {
	kernel.Dequantize(dst, quantized, p.dt == ir.Int8, p.scale, p.zero)
}

// saturate is one quantized value of v, which includes the zero point: rounded half to even, saturated.
func (p params) saturate(v float32) byte {
	r := ranges[p.dt]
	w := math.RoundToEven(float64(v))
	return byte(int32(min(max(w, float64(r.lo)), float64(r.hi))))
}

// pairRow is an operator with two operands: inputs A, its scale and zero point, B likewise, C's scale and zero point.
func pairRow(name string, of func(a, b, c params) func(x, y float32) float32) op.Op {
	return op.Op{
		Domain: microsoft, Type: name, Since: 1, Shape: pairShape,
		Run: func(c *op.Call) error {
			a, b := c.In[0], c.In[3]
			var ps [3]params
			for i := range ps {
				var err error
				if ps[i], err = paramsAt(c.In, []int{1, 4, 6}[i], a.DType); err != nil {
					return err
				}
			}
			mapPairs(c, a, b, ps[2], of(ps[0], ps[1], ps[2]))
			return nil
		},
	}
}

func pairShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := triple(in, 0, "A")
	if err != nil {
		return nil, err
	}
	b, err := triple(in, 3, "B")
	if err != nil {
		return nil, err
	}
	if a.DType != b.DType {
		return nil, fmt.Errorf("inputs A and B are %s and %s, want the same type", a, b)
	}
	if err := checkParams(in, 6, "C", a.DType); err != nil {
		return nil, err
	}
	shape, err := op.BroadcastShapes(a.Shape, b.Shape)
	if err != nil {
		return nil, err
	}
	s := ir.Spec{DType: a.DType, Shape: shape}
	return []ir.Spec{s}, s.Valid()
}

func mapPairs(c *op.Call, a, b *ir.Array, p params, f func(x, y float32) float32) {
	raw := params{scale: 1, dt: a.DType}.values()
	y := c.Out[0].Data
	walk := block.Broadcast(c.Out[0].Shape, a.Shape, b.Shape)
	c.Pool.Rows(len(y), piece, func(from, to int) {
		walk.Runs(from, to, func(at, n int, off []int) {
			i, j := off[0], off[1]
			for k := range n {
				y[at+k] = p.saturate(f(raw[a.Data[i]], raw[b.Data[j]]))
				i, j = i+walk.Step(0), j+walk.Step(1)
			}
		})
	})
}

// mapRow is an operator with one operand: inputs X, its scale and zero point, Y's scale and zero point. It uses a table
// of 256 values.
func mapRow(name string, of func(n *op.Node) func(x []float32)) op.Op {
	return op.Op{
		Domain: microsoft, Type: name, Since: 1, InPlace: []int{0},
		Shape: func(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
			x, err := triple(in, 0, "X")
			if err != nil {
				return nil, err
			}
			return []ir.Spec{x.Spec()}, checkParams(in, 3, "Y", x.DType)
		},
		Run: func(c *op.Call) error {
			x, err := paramsAt(c.In, 1, c.In[0].DType)
			if err != nil {
				return err
			}
			y, err := paramsAt(c.In, 3, c.In[0].DType)
			if err != nil {
				return err
			}
			values := x.values()
			of(c.Node)(values[:])
			lookUp(c.Pool, c.Out[0].Data, c.In[0].Data, y.table(values))
			return nil
		},
	}
}

// table are the 256 quantized results.
func (p params) table(values *[256]float32) *[256]byte {
	table := new([256]byte)
	p.quantize(table[:], values[:])
	return table
}

func lookUp(p *op.Pool, dst, x []byte, table *[256]byte) {
	p.Rows(len(x), piece, func(from, to int) {
		for i := from; i < to; i++ {
			dst[i] = table[x[i]]
		}
	})
}
