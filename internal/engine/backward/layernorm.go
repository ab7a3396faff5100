package backward

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// layerNorms is the gradient of LayerNormalization, and without Mean of RMSNormalization:
//
//	dX, dScale, dBias = LayerNormGrad(X, dY, InvStdDev, Scale, Mean)
//
// over the axes from attribute axis on. With Z = (X-Mean)·InvStdDev and G = dY·Scale,
// dX = InvStdDev·(G - mean(G) - Z·mean(G·Z)), without mean(G) if there is no Mean; without Scale it is 1.
func layerNorms() []op.Op {
	return []op.Op{{
		Type: "LayerNormGrad", Shape: layerNormShape, Work: layerNormWork, InPlace: []int{1},
		Run: op.FloatOrDouble(runLayerNorm(normRowSingle), runLayerNorm(normRowDouble)),
	}}
}

func layerNormShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := alike(2)(n, in); err != nil {
		return nil, err
	}
	x := in[0]
	axis, err := op.Axis(n.Int("axis", -1), len(x.Shape))
	if err != nil {
		return nil, err
	}
	inv, err := op.Arg(in, 2, "InvStdDev")
	if err != nil {
		return nil, err
	}
	if err := isLike(x, inv, 2, op.Product(x.Shape[:axis])); err != nil {
		return nil, err
	}
	if mean := op.Opt(in, 4); mean != nil {
		if err := isLike(x, mean, 4, inv.Elems()); err != nil {
			return nil, err
		}
	}
	row := ir.Spec{DType: x.DType, Shape: x.Shape[axis:]}
	if scale := op.Opt(in, 3); scale != nil {
		row.Shape = scale.Shape
		if err := isLike(x, scale, 3, op.Product(x.Shape[axis:])); err != nil {
			return nil, err
		}
	}
	if n.NumOut() > 3 {
		return nil, fmt.Errorf("%d outputs, want at most 3", n.NumOut())
	}
	return []ir.Spec{x.Spec(), row, row}, nil
}

// layerNorm is the rows of one node. Rows are summed per piece first, and pieces in order.
type layerNorm struct{ rows, n, pieces int }

const normPieces, normRows = 64, 16 // maximum number of pieces, minimum rows per piece

func layerNormOf(n *op.Node, x *ir.Array) layerNorm {
	axis, err := op.Axis(n.Int("axis", -1), len(x.Shape))
	if err != nil {
		return layerNorm{}
	}
	l := layerNorm{rows: int(op.Product(x.Shape[:axis])), n: int(op.Product(x.Shape[axis:]))}
	// By the shape alone: the order of sums does not depend on the number of workers.
	l.pieces = max(1, min(normPieces, l.rows/normRows))
	return l
}

// layerNormWork is the scratch of the sums of each piece, and of two rows per worker.
func layerNormWork(n *op.Node, in []*ir.Array, workers int) int64 {
	l := layerNormOf(n, in[0])
	return int64(2*(l.pieces+workers)*l.n) * in[0].DType.Bits() / 8
}

// A normRow computes a row of dX, and adds to those of dScale and dBias, nil if they are unused.
// z and g are scratch of a row. Slices of scale may be nil.
type normRow[T number] func(dx, dscale, dbias, x, dy, scale, z, g []T, mean, inv T, centered bool)

func runLayerNorm[T number](row normRow[T]) func(*op.Call) error {
	return func(c *op.Call) error {
		l := layerNormOf(c.Node, c.In[0])
		work := kernel.Words[T](c.Work)
		sums, buffers := work[:2*l.pieces*l.n], work[2*l.pieces*l.n:]
		x, dy, inv := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.In[2])
		scale, mean := view[T](c.Opt(3)), view[T](c.Opt(4))
		dx := view[T](c.Out[0])
		clear(sums)
		c.Pool.Slots(l.pieces, func(p, slot int) {
			z, g := buffers[2*slot*l.n:][:l.n], buffers[(2*slot+1)*l.n:][:l.n]
			dscale, dbias := sums[2*p*l.n:][:l.n], sums[(2*p+1)*l.n:][:l.n]
			for i := p * l.rows / l.pieces; i < (p+1)*l.rows/l.pieces; i++ {
				// Without a consumer dX goes to scratch memory, as the sums need its row all the same.
				m, at, to := T(0), i*l.n, g
				if mean != nil {
					m = mean[i]
				}
				if dx != nil {
					to = dx[at:][:l.n]
				}
				row(to, dscale, dbias, x[at:][:l.n], dy[at:][:l.n], scale, z, g, m, inv[i], mean != nil)
			}
		})
		for k := range 2 {
			if k+1 < len(c.Out) && c.Out[k+1] != nil {
				joinRows(c.Pool, ir.View[T](c.Out[k+1]), sums[k*l.n:], l)
			}
		}
		return nil
	}
}

// joinRows adds every second row of sums.
func joinRows[T number](p *op.Pool, dst, sums []T, l layerNorm) {
	p.Rows(l.n, grain/l.pieces, func(from, to int) {
		clear(dst[from:to])
		for i := range l.pieces {
			for j, v := range sums[2*i*l.n:][from:to] {
				dst[from+j] += v
			}
		}
	})
}

func normRowSingle(dx, dscale, dbias, x, dy, scale, z, g []float32, mean, inv float32, centered bool) {
	kernel.SubScalar(z, x, mean)
	kernel.MulScalar(z, z, inv)
	kernel.Mul(g, dy, z)
	kernel.Add(dscale, dscale, g)
	kernel.Add(dbias, dbias, dy)
	if scale != nil {
		kernel.Mul(g, dy, scale)
	} else {
		copy(g, dy)
	}
	n, shift := float64(len(x)), 0.0
	if centered {
		shift = kernel.ReduceSum(g) / n
	}
	kernel.Axpy(g, float32(-kernel.Dot(g, z)/n), z)
	kernel.SubScalar(g, g, float32(shift))
	kernel.MulScalar(dx, g, inv)
}

func normRowDouble(dx, dscale, dbias, x, dy, scale, z, g []float64, mean, inv float64, centered bool) {
	n, shift, slope := float64(len(x)), 0.0, 0.0
	for i := range x {
		z[i], g[i] = (x[i]-mean)*inv, dy[i]
		if scale != nil {
			g[i] *= scale[i]
		}
		dscale[i] += dy[i] * z[i]
		dbias[i] += dy[i]
		slope += g[i] * z[i] / n
		if centered {
			shift += g[i] / n
		}
	}
	for i := range dx {
		dx[i] = inv * (g[i] - shift - z[i]*slope)
	}
}
