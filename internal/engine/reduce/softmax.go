package reduce

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A normalizer computes each lane of its output from the same lane of its input.
type normalizer struct {
	name   string
	cost   int // per element, in additions
	single func(n *op.Node) func(dst, x []float32)
	double func(n *op.Node) func(dst, x []float64)
	across func(c *op.Call, l lanes) // for float32 if the lanes are not contiguous; may be missing
}

// softmaxOps: below opset 13 the axes from attribute axis on are flattened.
func softmaxOps() []op.Op {
	var ops []op.Op
	for _, f := range []normalizer{
		{"Softmax", 8, fixed(kernel.Softmax), fixed(softmax), softColumns},
		{"LogSoftmax", 8, fixed(kernel.LogSoftmax), fixed(logSoftmax), softColumns},
		{"Hardmax", 2, fixed(hardmax[float32]), fixed(hardmax[float64]), nil},
	} {
		ops = append(ops, f.row(1, 1, flattened), f.row(13, -1, lanesOf))
	}
	lp := normalizer{"LpNormalization", 2, lpNorm[float32], lpNorm[float64], nil}
	return append(ops, lp.row(1, -1, lanesOf))
}

func fixed[T any](f func(dst, x []T)) func(*op.Node) func(dst, x []T) {
	return func(*op.Node) func(dst, x []T) { return f }
}

func flattened(a *ir.Array, axis int) lanes {
	return lanes{int(op.Product(a.Shape[:axis])), int(op.Product(a.Shape[axis:])), 1}
}

func (f normalizer) row(since, axis int64, split func(*ir.Array, int) lanes) op.Op {
	lanesIn := func(n *op.Node, in []*ir.Array) (lanes, error) {
		i, err := op.Axis(n.Int("axis", axis), len(in[0].Shape))
		if err != nil {
			return lanes{}, err
		}
		return split(in[0], i), nil
	}
	return op.Op{
		Type: f.name, Since: since, InPlace: []int{0},
		Shape: func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
			x, err := block.Floats.Tensor(in, 0, "input")
			if err != nil {
				return nil, err
			}
			if _, err := lanesIn(n, in); err != nil {
				return nil, err
			}
			if p := n.Int("p", 2); p != 1 && p != 2 {
				return nil, fmt.Errorf("attribute p is %d, want 1 or 2", p)
			}
			return []ir.Spec{x.Spec()}, nil
		},
		Work: func(n *op.Node, in []*ir.Array, workers int) int64 {
			l, err := lanesIn(n, in)
			if err != nil {
				return 0
			}
			return int64(workers) * max(softBytes, l.bytes(in[0].DType))
		},
		Run: func(c *op.Call) error {
			l, err := lanesIn(c.Node, c.In)
			if err != nil {
				return err
			}
			return f.run(c, l)
		},
	}
}

func (f normalizer) run(c *op.Call, l lanes) error {
	switch dt := c.In[0].DType; {
	case dt == ir.Float && l.inner > 1 && l.n > 0 && f.across != nil:
		f.across(c, l)
		return nil
	case dt == ir.Double:
		return along(c, l, f.cost, f.double(c.Node))
	}
	return along(c, l, f.cost, f.single(c.Node))
}

func softmax(dst, x []float64) {
	// Subtracting the maximum changes no quotient, and no exponential overflows.
	top, sum := maximum(x), 0.0
	for i, v := range x {
		dst[i] = math.Exp(v - top)
		sum += dst[i]
	}
	for i := range dst {
		dst[i] /= sum
	}
}

func logSoftmax(dst, x []float64) {
	top, sum := maximum(x), 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	// v - top first: the difference is exact for close numbers, while top + log(sum) would be rounded.
	rest := math.Log(sum)
	for i, v := range x {
		dst[i] = v - top - rest
	}
}

// maximum is the maximum, NaN if any element is.
func maximum(x []float64) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, v)
	}
	return top
}

// hardmax is 1 at the first maximum, 0 elsewhere.
func hardmax[T floatElement](dst, x []T) {
	if len(x) == 0 {
		return
	}
	at := find(x, slices.Max(x), false)
	clear(dst)
	dst[at] = 1
}

// lpNorm divides by the sum of magnitudes, or by the root of the sum of squares; zeros are unchanged.
func lpNorm[T floatElement](n *op.Node) func(dst, x []T) {
	p := n.Int("p", 2)
	return func(dst, x []T) {
		sum := 0.0
		for _, v := range x {
			if p == 1 {
				sum += math.Abs(float64(v))
			} else {
				sum += float64(v) * float64(v)
			}
		}
		if p == 2 {
			sum = math.Sqrt(sum)
		}
		if sum == 0 {
			clear(dst)
			return
		}
		for i, v := range x {
			dst[i] = T(float64(v) / sum)
		}
	}
}
