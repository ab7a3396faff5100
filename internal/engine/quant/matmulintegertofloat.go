package quant

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/activation"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

func toFloatShape(n *op.Node, in []*ir.Array, p *product) ([]ir.Spec, error) {
	if err := requireInputs(in, input{2, "a_scale"}, input{3, "b_scale"}); err != nil {
		return nil, err
	}
	if err := p.checkScales(in[2], in[3], nil); err != nil {
		return nil, err
	}
	return p.floatSpecs(n, op.Opt(in, 6))
}

// floatSpecs is a float result with an optional bias and activation.
func (p *product) floatSpecs(n *op.Node, bias *ir.Array) ([]ir.Spec, error) {
	if bias != nil && (bias.DType != ir.Float || bias.Elems() != int64(p.N)) {
		return nil, fmt.Errorf("input bias is %s, want one float for each of %d columns", bias, p.N)
	}
	if _, err := activationOf(n); err != nil {
		return nil, err
	}
	s := ir.Spec{DType: ir.Float, Shape: p.shape}
	return []ir.Spec{s}, s.Valid()
}

func multiplyToFloat(c *op.Call, p *product) error {
	s, err := p.scales(c.In[2], c.In[3], nil, 1)
	if err != nil {
		return err
	}
	activate, err := activationOf(c.Node)
	if err != nil {
		return err
	}
	return p.multiplyStored(c, nil, p.toFloat(c.Out[0], s, c.Opt(6), activate))
}

// activationOf is the activation that the engine's fusions add to a node, nil for none.
func activationOf(n *op.Node) (func(row []float32), error) {
	return activation.Of(n.Text("activation", ""), n.Floats("activation_params"))
}

// toFloat writes float32(sum)·scale + bias, rounded after each step, and applies activate unless it is nil.
func (p *product) toFloat(y *ir.Array, s *scales, bias *ir.Array, activate func(row []float32)) finisher {
	to := ir.View[float32](y)
	var add []float32
	if bias != nil {
		add = ir.View[float32](bias)
	}
	return func(i, row, col int, sums []int32) {
		dst := to[(i*p.M+row)*p.N+col:][:len(sums)]
		if add == nil {
			kernel.DequantizeInt32Cols(dst, sums, s.row(row)[col:][:len(sums)], nil)
		} else {
			kernel.DequantizeInt32Cols(dst, sums, s.row(row)[col:][:len(sums)], add[col:][:len(sums)])
		}
		if activate != nil {
			activate(dst)
		}
	}
}

// dynamicMatMulRow is an operator with inputs A (float), B (quantized), B's scale and zero point, and a bias: A is
// quantized like in DynamicQuantizeLinear, and the product is float.
func dynamicMatMulRow(domain, name string) op.Op {
	w := dynamicMatMul
	return op.Op{
		Domain: domain, Type: name, Since: 1, Prepare: w.prepare, States: weightStates(),
		Shape: func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
			p, err := productOf(n, in, w)
			if err != nil {
				return nil, err
			}
			if in[0].DType != ir.Float {
				return nil, fmt.Errorf("input A is %s, want float", in[0])
			}
			if _, err := op.Arg(in, 2, "b_scale"); err != nil {
				return nil, err
			}
			if err := p.checkScales(nil, in[2], nil); err != nil {
				return nil, err
			}
			return p.floatSpecs(n, op.Opt(in, 4))
		},
		Work: func(n *op.Node, in []*ir.Array, workers int) int64 {
			p, err := productOf(n, in, w)
			if err != nil {
				return 0
			}
			return aligned(in[0].Elems()) + p.work(n, in, workers, true)
		},
		Run: func(c *op.Call) error {
			p, err := productOf(c.Node, c.In, w)
			if err != nil || c.Out[0].Elems() == 0 {
				return err
			}
			return multiplyDynamic(c, p)
		},
	}
}

func multiplyDynamic(c *op.Call, p *product) error {
	x := ir.View[float32](c.In[0])
	quantized, work := c.Work[:len(x)], c.Work[aligned(int64(len(x))):]
	// All of A before the product, as its only scale follows from the range of all elements.
	scale, zero := rangeOf(c.Pool, x)
	quantizeAll(c.Pool, quantized, x, scale, zero)
	s, err := p.scales(ir.ArrayOf([]float32{scale}), c.In[2], nil, 1)
	if err != nil {
		return err
	}
	activate, err := activationOf(c.Node)
	if err != nil {
		return err
	}
	return p.run(c, quantized, false, []int32{int32(zero)}, work, nil, p.toFloat(c.Out[0], s, c.Opt(4), activate))
}

// aligned is size rounded up to the alignment of Call.Work.
func aligned(size int64) int64 { return (size + 63) &^ 63 }
