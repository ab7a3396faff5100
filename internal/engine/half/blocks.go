package half

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// elementwise are the operators that are computed in one loop over blocks, which convert in the L1 cache, if all shapes
// are equal.
var elementwise = map[string]func(y []float32, in [2][]float32){
	"Add":  func(y []float32, in [2][]float32) { kernel.Add(y, in[0], in[1]) },
	"Mul":  func(y []float32, in [2][]float32) { kernel.Mul(y, in[0], in[1]) },
	"Relu": func(y []float32, in [2][]float32) { kernel.Relu(y, in[0]) },
	"Sub":  func(y []float32, in [2][]float32) { kernel.Sub(y, in[0], in[1]) },
}

// block is the number of elements that are in float32 at a time, and blocksWork the size of a worker's buffers: two
// inputs and the output.
const (
	block      = 1 << 10
	blocksWork = 3 * 4 * block
)

// inBlocks computes output 0 = f(inputs), each of them float32 or Float16 of n elements.
func inBlocks(c *op.Call, n int, f func(y []float32, in [2][]float32)) {
	y, exceeds := c.Out[0], c.Bool("exceeds", false)
	c.Pool.Slots((n+elementsAtOnce-1)/elementsAtOnce, func(task, slot int) {
		buffers := kernel.Words[float32](c.Work[slot*blocksWork:][:blocksWork])
		for at := task * elementsAtOnce; at < min((task+1)*elementsAtOnce, n); at += block {
			end := min(at+block, n)
			var in [2][]float32
			for i, a := range c.In {
				in[i] = read(a, at, end, buffers[i*block:])
			}
			if y.DType != ir.Float16 {
				f(ir.View[float32](y)[at:end], in)
				continue
			}
			result := buffers[2*block:][:end-at]
			f(result, in)
			Store(ir.View[uint16](y)[at:end], result, exceeds)
		}
	})
}

// read returns the elements from index from to index end-1, in buffer if they are Float16.
func read(a *ir.Array, from, end int, buffer []float32) []float32 {
	if a.DType != ir.Float16 {
		return ir.View[float32](a)[from:end]
	}
	kernel.F32FromF16(buffer[:end-from], ir.View[uint16](a)[from:end])
	return buffer[:end-from]
}
