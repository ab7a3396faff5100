package train

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// sharedWeights returns the operators on weights whose elements are entries of codebooks (weight sharing):
//
//	W = SharedWeight(codebook, indices, scales?)
//	dCodebook = SharedWeightGrad(indices, dW, scales?)
//
// W has the shape of indices. Element i is codebook[indices[i]] times scales[i/block]. The gradient of an entry is the
// sum of the gradients of its elements (Han et al., Deep Compression, ICLR 2016, section 3.3); attribute entries is
// their number.
func sharedWeights() []op.Op {
	return []op.Op{
		{Type: "SharedWeight", Shape: sharedShape, Run: runShared},
		{Type: "SharedWeightGrad", Shape: sharedGradShape, Work: sharedGradWork, Run: runSharedGrad},
	}
}

func sharedShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := tensor(in, 0, "codebook", ir.Float); err != nil {
		return nil, err
	}
	indices, err := tensor(in, 1, "indices", ir.Int32)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: ir.Float, Shape: indices.Shape}}, checkScales(n, in, indices)
}

func sharedGradShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	indices, err := tensor(in, 0, "indices", ir.Int32)
	if err != nil {
		return nil, err
	}
	if err := floats(in, 1, "dW", indices.Elems()); err != nil {
		return nil, err
	}
	out := ir.Spec{DType: ir.Float, Shape: []int64{n.Int("entries", 0)}}
	if err := out.Valid(); err != nil {
		return nil, fmt.Errorf("attribute entries: %w", err)
	}
	return []ir.Spec{out}, checkScales(n, in, indices)
}

// checkScales checks input 2, the scales of blocks.
func checkScales(n *op.Node, in []*ir.Array, indices *ir.Array) error {
	if len(in) < 3 || in[2] == nil {
		return nil
	}
	size := n.Int("block", 0)
	if size < 1 {
		return fmt.Errorf("attribute block is %d, want a positive number", size)
	}
	return floats(in, 2, "scales", (indices.Elems()+size-1)/size)
}

// A scaledRun is elements of one scale.
type scaledRun struct {
	from, to int
	scale    float32
}

// scaledRuns calls f for the elements of each scale, in order.
func scaledRuns(c *op.Call, from, to int, f func(r scaledRun)) {
	if len(c.In) < 3 || c.In[2] == nil {
		f(scaledRun{from, to, 1})
		return
	}
	size, scales := int(c.Int("block", 0)), ir.View[float32](c.In[2])
	for from < to {
		end := min(to, (from/size+1)*size)
		f(scaledRun{from, end, scales[from/size]})
		from = end
	}
}

// checkIndices returns the indices of input i, which must be below n.
func checkIndices(c *op.Call, i, n int) ([]int32, error) {
	indices := ir.View[int32](c.In[i])
	for _, at := range indices {
		if at < 0 || int(at) >= n {
			return nil, fmt.Errorf("index %d is out of range for %d entries", at, n)
		}
	}
	return indices, nil
}

func runShared(c *op.Call) error {
	w, codebook := ir.View[float32](c.Out[0]), ir.View[float32](c.In[0])
	indices, err := checkIndices(c, 1, len(codebook))
	if err != nil {
		return err
	}
	c.Pool.Rows(len(w), piece, func(from, to int) {
		scaledRuns(c, from, to, func(r scaledRun) {
			for i := r.from; i < r.to; i++ {
				w[i] = codebook[indices[i]] * r.scale
			}
		})
	})
	return nil
}

// sharedPiece is the number of elements that a task of SharedWeightGrad sums: enough for its sums to be small in
// comparison.
func sharedPiece(entries int64) int64 { return max(piece, 4*entries) }

func sharedGradWork(n *op.Node, in []*ir.Array, _ int) int64 {
	entries := n.Int("entries", 0)
	size := sharedPiece(entries)
	return block.Bytes[float64](int((in[0].Elems() + size - 1) / size * entries))
}

func runSharedGrad(c *op.Call) error {
	out, dw := ir.View[float32](c.Out[0]), ir.View[float32](c.In[1])
	indices, err := checkIndices(c, 0, len(out))
	if err != nil {
		return err
	}
	entries, size := len(out), int(sharedPiece(int64(len(out))))
	tasks := (len(dw) + size - 1) / size
	sums := block.Words[float64](c.Work, tasks*entries)
	c.Pool.For(tasks, func(task int) {
		sum := sums[task*entries:][:entries]
		clear(sum)
		scaledRuns(c, task*size, min(len(dw), (task+1)*size), func(r scaledRun) {
			for i := r.from; i < r.to; i++ {
				sum[indices[i]] += float64(dw[i] * r.scale)
			}
		})
	})
	// Tasks in order and in float64: the sum does not depend on the number of workers.
	for k := range out {
		total := 0.0
		for task := range tasks {
			total += sums[task*entries+k]
		}
		out[k] = float32(total)
	}
	return nil
}
