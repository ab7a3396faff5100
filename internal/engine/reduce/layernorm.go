package reduce

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A rowNorm normalizes rows of its input, which are the axes from attribute axis on, by their statistics. Zero means no
// such input or output.
type rowNorm struct {
	centered    bool // by mean and variance, else by the mean of squares
	epsilon     float32
	add         []int // inputs that are added to the first one before
	scale, bias int   // inputs
	typeOf      int   // the input whose type the output has
	mean, inv   int   // outputs
	sum         int   // output of the sum before normalization
}

const microsoft = "com.microsoft"

// rowNormOps: ONNX Runtime's optimizer inserts LayerNormalization into models below opset 17 too. The simplified ones
// are its names for RMSNormalization, the first of them in ONNX's own domain.
func rowNormOps() []op.Op {
	layer := rowNorm{centered: true, epsilon: 1e-5, scale: 1, bias: 2, mean: 1, inv: 2}
	rms := rowNorm{epsilon: 1e-5, scale: 1, typeOf: 1, inv: 1}
	skip := rowNorm{centered: true, epsilon: 1e-12, add: []int{1, 4}, scale: 2, bias: 3, mean: 1, inv: 2, sum: 3}
	skipRMS := rowNorm{epsilon: 1e-12, add: []int{1, 3}, scale: 2, mean: 1, inv: 2, sum: 3}
	return []op.Op{
		layer.row("", "LayerNormalization", 1),
		rms.row("", "RMSNormalization", 23),
		rms.row("", "SimplifiedLayerNormalization", 1),
		rms.row(microsoft, "SimplifiedLayerNormalization", 1),
		skip.row(microsoft, "SkipLayerNormalization", 1),
		skipRMS.row(microsoft, "SkipSimplifiedLayerNormalization", 1),
	}
}

func (r rowNorm) row(domain, name string, since int64) op.Op {
	o := op.Op{Domain: domain, Type: name, Since: since, Shape: r.shape, Run: r.run, Work: r.work}
	if r.typeOf == 0 {
		o.InPlace = []int{0}
	}
	return o
}

func (r rowNorm) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Floats.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	axis, err := op.Axis(n.Int("axis", -1), len(x.Shape))
	if err != nil {
		return nil, err
	}
	if err := r.inputs(x, in); err != nil {
		return nil, err
	}
	stash := n.Int("stash_type", int64(ir.Float))
	if stash <= 0 || stash > 255 || !block.Floats.Has(ir.DType(stash)) {
		return nil, fmt.Errorf("attribute stash_type is %d, want a float type", stash)
	}
	stats := slices.Clone(x.Shape)
	block.Fill(stats[axis:], 1)
	specs := make([]ir.Spec, max(r.mean, r.inv, r.sum)+1)
	// Number 0 stands for outputs that an operator does not have, and its own type is written last.
	specs[r.mean] = ir.Spec{DType: ir.DType(stash), Shape: stats}
	specs[r.inv] = specs[r.mean]
	specs[r.sum] = x.Spec()
	specs[0] = ir.Spec{DType: in[r.typeOf].DType, Shape: x.Shape}
	return specs, nil
}

func (r rowNorm) inputs(x *ir.Array, in []*ir.Array) error {
	if _, err := op.Arg(in, r.scale, "Scale"); err != nil {
		return err
	}
	for _, i := range slices.Concat(r.add, []int{r.scale, r.bias}) {
		if i > 0 && op.Opt(in, i) != nil {
			if err := broadcastsTo(x, in, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// broadcastsTo checks an input of any float type that is broadcast to x.
func broadcastsTo(x *ir.Array, in []*ir.Array, i int) error {
	a, err := block.Floats.Tensor(in, i, fmt.Sprint(i))
	if err != nil {
		return err
	}
	if (a.DType == ir.Double) != (x.DType == ir.Double) {
		return fmt.Errorf("input %d is %s, which does not match %s", i, a, x)
	}
	shape, err := op.BroadcastShapes(x.Shape, a.Shape)
	if err != nil {
		return err
	}
	if !slices.Equal(shape, x.Shape) {
		return fmt.Errorf("input %d is %s, which does not broadcast to %s", i, a, x)
	}
	return nil
}

func rowsFrom(n *op.Node, x *ir.Array) lanes {
	axis, err := op.Axis(n.Int("axis", -1), len(x.Shape))
	if err != nil {
		return lanes{}
	}
	return flattened(x, axis)
}

// rowBuffers is the number of rows per worker: input, output and an operand each for scale, bias and addends. Two more
// are shared.
const rowBuffers = 5

func (r rowNorm) work(n *op.Node, in []*ir.Array, workers int) int64 {
	return int64(rowBuffers*workers+2) * block.Bytes[float64](rowsFrom(n, in[0]).n)
}

func (r rowNorm) run(c *op.Call) error {
	if c.In[0].DType == ir.Double {
		normRows(c, r, normDouble)
	} else {
		normRows(c, r, normSingle)
	}
	return nil
}

// A rowInput is an input that is broadcast to the first one, row by row.
type rowInput[T ir.Element] struct {
	block.Operand[T]
	fixed []T // set if it is the same for every row
}

// rowInputOf returns input a, nil for none. Memory for a fixed row is taken from s.
func rowInputOf[T ir.Element](x, a *ir.Array, l lanes, s *block.Scratch) *rowInput[T] {
	if a == nil {
		return nil
	}
	same := l.outer > 0 && sameForRows(x, a, l)
	// Read once for all rows. Other operands are read again for each row.
	if same && a.Elems() == int64(l.n) {
		return &rowInput[T]{fixed: block.Read[T](a).Block(block.Take[T](s, l.n), 0, l.n)}
	}
	r := &rowInput[T]{Operand: block.OperandOf[T](block.Walk{}, 0, x, a)}
	if same {
		r.fixed = r.Ordered(0, l.n, block.Take[T](s, l.n))
	}
	return r
}

// sameForRows reports whether a broadcasts along the axes before the rows of x.
func sameForRows(x, a *ir.Array, l lanes) bool {
	n, i := 1, len(x.Shape)
	for i > 0 && n < l.n {
		i--
		n *= int(x.Shape[i])
	}
	ahead := max(len(a.Shape)-(len(x.Shape)-i), 0)
	return op.Product(a.Shape[:ahead]) == 1
}

func (r *rowInput[T]) row(at, n int, buf []T) []T {
	switch {
	case r == nil:
		return nil
	case r.fixed != nil:
		return r.fixed
	}
	return r.Ordered(at, n, buf)
}
