package backward

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// activations are gradients of operators that work element by element:
//
//	dX = dV·f(V)
//
// with V the output where the derivative follows from it, the input where it does not.
func activations() []op.Op {
	relu := op.Op{Type: "ReluGrad", Shape: alike(2), InPlace: []int{1, 0},
		Run: op.FloatOrDouble(inPieces(reluSingles), inPieces(relu[float64]))}
	clip := op.Op{Type: "ClipGrad", Shape: clipShape, InPlace: []int{1, 0},
		Run: op.FloatOrDouble(runClip[float32], runClip[float64])}
	ops := []op.Op{relu, clip}
	for _, d := range derivatives {
		ops = append(ops, op.Op{Type: d.typ + "Grad", Shape: alike(2), InPlace: []int{1, 0},
			Run: op.FloatOrDouble(d.singles, d.doubles)})
	}
	return ops
}

// grain is the minimum number of elements per task.
const grain = 8 << 10

func inPieces[T number](f func(dx, y, dy []T)) func(*op.Call) error {
	return func(c *op.Call) error {
		y, dy, dx := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.Out[0])
		c.Pool.Rows(len(dx), grain, func(from, to int) { f(dx[from:to], y[from:to], dy[from:to]) })
		return nil
	}
}

// A derivative is f, from the node's attributes: of a block of elements, or of one where there is
// no kernel for blocks.
type derivative struct {
	typ   string
	block func(n *op.Node) func(d, v, spare []float32)
	one   func(n *op.Node) func(v float64) float64
}

// derivativeBlock is the elements of which derivatives stay in the cache until they are multiplied.
const derivativeBlock = 512

func (d derivative) singles(c *op.Call) error {
	f := eachOf(d.one(c.Node))
	if d.block != nil {
		f = d.block(c.Node)
	}
	return inPieces(func(dx, v, dy []float32) {
		var slope, spare [derivativeBlock]float32
		for i := 0; i < len(dx); i += derivativeBlock {
			n := min(derivativeBlock, len(dx)-i)
			f(slope[:n], v[i:i+n], spare[:n])
			kernel.Mul(dx[i:i+n], slope[:n], dy[i:i+n])
		}
	})(c)
}

func (d derivative) doubles(c *op.Call) error {
	f := d.one(c.Node)
	return inPieces(func(dx, v, dy []float64) {
		for i := range dx {
			dx[i] = dy[i] * f(v[i])
		}
	})(c)
}

func eachOf(f func(float64) float64) func(d, v, _ []float32) {
	return func(d, v, _ []float32) {
		for i := range d {
			d[i] = float32(f(float64(v[i])))
		}
	}
}

// relu passes the gradient where the output is positive, even if the gradient is NaN elsewhere.
func relu[T number](dx, y, dy []T) {
	for i := range dx {
		if y[i] > 0 {
			dx[i] = dy[i]
		} else {
			dx[i] = 0
		}
	}
}

// reluSingles is relu without branches, since signs of activations are mispredicted. A number above zero is an
// integer above zero in its bits.
func reluSingles(dx, y, dy []float32) {
	y, dy = y[:len(dx)], dy[:len(dx)]
	for i := range dx {
		v := int32(math.Float32bits(y[i]))
		dx[i] = math.Float32frombits(math.Float32bits(dy[i]) & uint32((-v&^v)>>31))
	}
}

// clipShape: bounds are inputs 2 and 3, or attributes.
func clipShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	specs, err := alike(2)(n, in)
	for i := 2; i < 4 && err == nil; i++ {
		if b := op.Opt(in, i); b != nil {
			err = isLike(in[0], b, i, 1)
		}
	}
	return specs, err
}

// runClip passes the gradient where the output is between the bounds.
func runClip[T number](c *op.Call) error {
	lo, hi := bound[T](c, 2, "min"), bound[T](c, 3, "max")
	return inPieces(func(dx, y, dy []T) {
		for i := range dx {
			if (lo == nil || y[i] > *lo) && (hi == nil || y[i] < *hi) {
				dx[i] = dy[i]
			} else {
				dx[i] = 0
			}
		}
	})(c)
}

func bound[T number](c *op.Call, i int, name string) *T {
	if a := c.Opt(i); a != nil {
		return &ir.View[T](a)[0]
	}
	if !c.Has(name) {
		return nil
	}
	b := T(c.Float(name, 0))
	return &b
}
