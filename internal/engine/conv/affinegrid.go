package conv

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// affineGrids is AffineGrid.
func affineGrids() []op.Op {
	return wide(op.Op{Type: "AffineGrid", Since: 20, Shape: affineShape, Run: affineTypes().run})
}

func affineTypes() byType {
	return byType{ir.Float: affineGrid[float32], ir.Double: affineGrid[float64]}
}

func affineShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	theta, err := op.Arg(in, 0, "theta")
	if err != nil {
		return nil, err
	}
	if err := affineTypes().check(theta); err != nil {
		return nil, err
	}
	size, err := op.Arg(in, 1, "size")
	if err != nil {
		return nil, err
	}
	lengths, err := op.Ints(size)
	if err != nil {
		return nil, err
	}
	axes := len(lengths) - 2
	if axes != 2 && axes != 3 {
		return nil, fmt.Errorf("input size is %v, want (N, C, H, W) or (N, C, D, H, W)", lengths)
	}
	want := []int64{lengths[0], int64(axes), int64(axes + 1)}
	if len(theta.Shape) != 3 || theta.Shape[0] != want[0] || theta.Shape[1] != want[1] || theta.Shape[2] != want[2] {
		return nil, fmt.Errorf("input theta is %s, want shape %v", theta, want)
	}
	shape := append([]int64{lengths[0]}, lengths[2:]...)
	return like(theta, append(shape, int64(axes))...)
}

// affineGrid maps each output position, with coordinates from -1 to 1 and the last axis first, by the matrix of its
// image.
func affineGrid[T float](c *op.Call) error {
	theta, y := ir.View[T](c.In[0]), ir.View[T](c.Out[0])
	shape := c.Out[0].Shape
	axes := len(shape) - 2
	corners := c.Bool("align_corners", false)
	places := int(op.Product(shape[1 : axes+1]))
	c.Pool.Rows(len(y)/axes, 1<<12, func(from, to int) {
		var at [3]T
		for i := from; i < to; i++ {
			rest := i
			for a := axes; a > 0; a-- {
				n := int(shape[a])
				at[axes-a] = spot[T](rest%n, n, corners)
				rest /= n
			}
			matrix := part(theta, i/places, axes*(axes+1))
			for r := range axes {
				row := part(matrix, r, axes+1)
				sum := row[axes]
				for k, v := range at[:axes] {
					sum += row[k] * v
				}
				y[i*axes+r] = sum
			}
		}
	})
	return nil
}

// spot is the coordinate of position i of n: between the centres of the first and last one if corners is set, else
// between the edges.
func spot[T float](i, n int, corners bool) T {
	switch {
	case !corners:
		return T(2*i+1)/T(n) - 1
	case n == 1:
		return 0
	}
	return T(2*i)/T(n-1) - 1
}
