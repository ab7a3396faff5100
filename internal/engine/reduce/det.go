package reduce

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func detOps() []op.Op {
	return []op.Op{{Type: "Det", Since: 11, Shape: detShape, Run: runDet, Work: detWork}}
}

func detShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Floats.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	rank := len(x.Shape)
	if rank < 2 || x.Shape[rank-1] != x.Shape[rank-2] {
		return nil, fmt.Errorf("input X is %s, want square matrices", x)
	}
	return []ir.Spec{{DType: x.DType, Shape: x.Shape[:rank-2]}}, nil
}

func side(x *ir.Array) int { return int(x.Shape[len(x.Shape)-1]) }

func detWork(_ *op.Node, in []*ir.Array, workers int) int64 {
	n := side(in[0])
	return int64(workers) * block.Bytes[float64](n*n)
}

func runDet(c *op.Call) error {
	n := side(c.In[0])
	out := setter(c.Out[0])
	block.Parallel(c, int(c.Out[0].Elems()), block.Grain/max(n*n*n, 1), block.Bytes[float64](n*n),
		func(s block.Scratch, from, to int) {
			a := block.Take[float64](&s, n*n)
			for i := from; i < to; i++ {
				number.Read(a, c.In[0], i*n*n)
				out(i, determinant(a, n))
			}
		})
	return nil
}

// determinant is the product of the pivots of Gaussian elimination with partial pivoting. a is overwritten.
func determinant(a []float64, n int) float64 {
	det := 1.0
	for k := range n {
		// The largest element of the column as pivot keeps the factors at most 1, and with them the errors bounded.
		pivot := k
		for i := k + 1; i < n; i++ {
			if math.Abs(a[i*n+k]) > math.Abs(a[pivot*n+k]) {
				pivot = i
			}
		}
		if pivot != k {
			det = -det
			for j := range n {
				a[k*n+j], a[pivot*n+j] = a[pivot*n+j], a[k*n+j]
			}
		}
		det *= a[k*n+k]
		if a[k*n+k] == 0 {
			return 0
		}
		for i := k + 1; i < n; i++ {
			factor := a[i*n+k] / a[k*n+k]
			for j := k; j < n; j++ {
				a[i*n+j] -= factor * a[k*n+j]
			}
		}
	}
	return det
}
