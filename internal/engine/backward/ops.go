package backward

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// domain is the domain of all operators of this package.
const domain = "mcompress"

// Ops returns the operators of this package.
func Ops() []op.Op {
	ops := slices.Concat(
		activations(),
		attentions(),
		batchNorms(),
		batchNormPools(),
		convolutions(),
		gathers(),
		layerNorms(),
		masks(),
		pools(),
		softmaxes(),
	)
	for i := range ops {
		ops[i].Domain, ops[i].Since = domain, 1
	}
	return ops
}

// A number is an element type of gradients.
type number interface{ float32 | float64 }

// alike checks that inputs 0 to k-1 are given and are Float or Double of one type and shape, which is that of output 0.
func alike(k int) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		for i := range k {
			a, err := op.Arg(in, i, fmt.Sprint(i))
			if err != nil {
				return nil, err
			}
			if err := floating(a, i); err != nil {
				return nil, err
			}
			if a.DType != in[0].DType || !slices.Equal(a.Shape, in[0].Shape) {
				return nil, fmt.Errorf("input %d is %s, want %s as input 0", i, a, in[0])
			}
		}
		return []ir.Spec{in[0].Spec()}, nil
	}
}

// floating checks that input i of a is Float or Double, of a valid size.
func floating(a *ir.Array, i int) error {
	if a.DType != ir.Float && a.DType != ir.Double {
		return fmt.Errorf("input %d is %s, want float or double", i, a)
	}
	return a.Spec().Valid()
}

// view returns the elements of an optional input or output.
func view[T number](a *ir.Array) []T {
	if a == nil {
		return nil
	}
	return ir.View[T](a)
}

// isLike checks that input i of a has the element type of x and, unless negative, this number of elements.
func isLike(x, a *ir.Array, i int, elems int64) error {
	if err := a.Spec().Valid(); err != nil {
		return fmt.Errorf("input %d: %w", i, err)
	}
	if a.DType != x.DType || elems >= 0 && a.Elems() != elems {
		return fmt.Errorf("input %d is %s, not as %s", i, a, x)
	}
	return nil
}
