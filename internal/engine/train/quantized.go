package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// quantizedActivations store x in 8 bits by blocks of attribute block elements (Chen et al., ActNN, 2021,
// arXiv:2104.14129):
//
//	q = QuantizeActivation(x, step)
//	x = DequantizeActivation(q)
//
// q holds the minimum and the scale of each block as float32, and then the quantized values. Rounding is stochastic, by
// a counter of the element, attribute seed, the step and the micro-batch, so that the gradient is unbiased and does not
// depend on the number of worker threads. A block that is not finite, or whose range is not, becomes NaN. Attribute
// shape of DequantizeActivation is x's.
func quantizedActivations() []op.Op {
	return []op.Op{
		{Type: "QuantizeActivation", Shape: quantizedShape, Run: quantizeActivation},
		{Type: "DequantizeActivation", Shape: dequantizedShape, Run: dequantizeActivation},
	}
}

// activationBlock is the default of attribute block, and maxActivationBlock its maximum.
const activationBlock, maxActivationBlock = 256, 1 << 16

func blockOf(n *op.Node) (int, error) {
	b := n.Int("block", activationBlock)
	if b < 1 || b > maxActivationBlock {
		return 0, fmt.Errorf("attribute block is %d, want 1 to %d", b, maxActivationBlock)
	}
	return int(b), nil
}

// QuantizedBytes returns the size of n quantized activations in blocks of the default size.
func QuantizedBytes(n int64) int64 { return quantizedBytes(n, activationBlock) }

// quantizedBytes is the size of n elements in blocks.
func quantizedBytes(n int64, block int) int64 { return n + headerBytes*blocks(n, block) }

func blocks(n int64, block int) int64 { return (n + int64(block) - 1) / int64(block) }

const headerBytes = 8 // minimum and scale

func quantizedShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := tensor(in, 0, "x", ir.Float)
	if err != nil {
		return nil, err
	}
	block, err := blockOf(n)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: ir.Uint8, Shape: []int64{quantizedBytes(x.Elems(), block)}}}, stepInput(in, 1)
}

func dequantizedShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	q, err := tensor(in, 0, "q", ir.Uint8)
	if err != nil {
		return nil, err
	}
	block, err := blockOf(n)
	if err != nil {
		return nil, err
	}
	x := ir.Spec{DType: ir.Float, Shape: slices.Clone(n.Ints("shape"))}
	if err := x.Valid(); err != nil {
		return nil, fmt.Errorf("attribute shape: %w", err)
	}
	if want := quantizedBytes(x.Elems(), block); q.Elems() != want {
		return nil, fmt.Errorf("input q is %s, want %d bytes", q, want)
	}
	return []ir.Spec{x}, nil
}

// eachBlock calls f for each block of n elements, from index from to index to-1.
func eachBlock(c *op.Call, n int, f func(block, from, to int)) {
	size := int(c.Int("block", activationBlock))
	c.Pool.Rows(int(blocks(int64(n), size)), max(1, piece/size), func(first, last int) {
		for b := first; b < last; b++ {
			f(b, b*size, min((b+1)*size, n))
		}
	})
}

// parts are the headers and the values of n quantized elements in data.
func parts(c *op.Call, data []byte, n int) (headers []float32, values []byte) {
	at := headerBytes * blocks(int64(n), int(c.Int("block", activationBlock)))
	return kernel.Words[float32](data[:at]), data[at:]
}

func quantizeActivation(c *op.Call) error {
	x := ir.View[float32](c.In[0])
	random := counterOf(c, 1, int(blocks(int64(len(x)), int(c.Int("block", activationBlock)))))
	headers, values := parts(c, c.Out[0].Data, len(x))
	eachBlock(c, len(x), func(b, from, to int) {
		lo, hi := kernel.MinMax(x[from:to])
		scale := (hi - lo) / 255
		inverse := 1 / scale
		switch {
		case math.IsInf(float64(scale), 0):
			scale = float32(math.NaN())
		case math.IsInf(float64(inverse), 0): // the elements are equal, or almost
			inverse = 0
		}
		headers[2*b], headers[2*b+1] = lo, scale
		kernel.QuantizeStochastic(values[from:to], x[from:to], lo, inverse, uint32(random.At(uint64(b))))
	})
	return nil
}

func dequantizeActivation(c *op.Call) error {
	x := ir.View[float32](c.Out[0])
	headers, values := parts(c, c.In[0].Data, len(x))
	eachBlock(c, len(x), func(b, from, to int) {
		kernel.Dequantize(x[from:to], values[from:to], false, headers[2*b+1], 0)
		kernel.AddScalar(x[from:to], x[from:to], headers[2*b])
	})
	return nil
}
