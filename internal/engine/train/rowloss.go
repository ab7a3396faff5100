package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A rowLoss is the mean of a loss over the rows of a tensor.
//
// Inputs are x, the target and scale; outputs are the loss, times attribute weight, and its gradient for x, times
// weight and scale: scale is the fraction of a step's rows that x has, times the loss scale that keeps gradients within
// the range of float16.
//
// The optional input 3 is 1 for the tokens that count and 0 for padding: float32, with the first axes of x, which may
// be flattened. Rows of padding have neither a loss nor a gradient, and the mean is over the others. Labels have
// ignore_index instead.
type rowLoss struct {
	name   string
	labels bool // the target is one class per row; else it has the type of x
	parts  bool // a row may have padding in it
	check  func(n *op.Node) error
	lanes  func(n *op.Node, x *ir.Array) (lanes, error)
	single func(n *op.Node, r row[float32]) float64
	double func(n *op.Node, r row[float64]) float64
}

// A row is the data of the loss of one row.
type row[T number] struct {
	x, target []T
	label     int
	dx        []T // factor times the gradient; nil if unused
	factor    float64
	spare     [3][]T // of the length of x
}

func rowLosses() []op.Op {
	var rows []op.Op
	for _, l := range []rowLoss{
		{"CrossEntropyLoss", true, false, checkSmoothing, classes, crossEntropy[float32], crossEntropy[float64]},
		{"DistillLoss", false, false, checkTemperature, classes, distill[float32], distill[float64]},
		{"CosineLoss", false, true, func(*op.Node) error { return nil }, samples, cosine[float32], cosine[float64]},
	} {
		rows = append(rows, op.Op{Type: l.name, Shape: l.shape, Work: l.work, Run: op.FloatOrDouble(
			func(c *op.Call) error { return runRows(c, l, l.single) },
			func(c *op.Call) error { return runRows(c, l, l.double) },
		)})
	}
	return rows
}

// classes returns the lanes along attribute axis, 1 by default.
func classes(n *op.Node, x *ir.Array) (lanes, error) {
	axis, err := op.Axis(n.Int("axis", 1), len(x.Shape))
	if err != nil {
		return lanes{}, err
	}
	if x.Shape[axis] == 0 {
		return lanes{}, errors.New("no classes")
	}
	return lanesOf(x.Shape, axis), nil
}

// samples returns the lanes along attribute axis, or one per index of the first axis.
func samples(n *op.Node, x *ir.Array) (lanes, error) {
	if n.Has("axis") {
		return classes(n, x)
	}
	if len(x.Shape) == 0 {
		return lanes{}, errors.New("input x is a scalar, not a batch of samples")
	}
	return lanes{int(x.Shape[0]), int(op.Product(x.Shape[1:])), 1}, nil
}

func (l rowLoss) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := tensor(in, 0, "x", ir.Float, ir.Double)
	if err != nil {
		return nil, err
	}
	rows, err := l.lanes(n, x)
	if err != nil {
		return nil, err
	}
	if err := l.target(n, x, in, rows); err != nil {
		return nil, err
	}
	if err := floats(in, 2, "scale", 1); err != nil {
		return nil, err
	}
	if len(in) > 3 {
		keep, err := tokens(in, x)
		switch count := int64(rows.rows()); {
		case err != nil:
			return nil, err
		case l.labels:
			return nil, errors.New("input 3: labels of padding are ignore_index")
		case rows.inner > 1 || keep.Elems() > 0 && count%keep.Elems() != 0 && (!l.parts || keep.Elems()%count != 0):
			return nil, fmt.Errorf("input keep is %s, which are no parts of %d rows of %s", keep, count, x)
		}
	}
	return []ir.Spec{scalarSpec(x.DType), x.Spec()}, l.check(n)
}

func (l rowLoss) target(n *op.Node, x *ir.Array, in []*ir.Array, rows lanes) error {
	if !l.labels {
		return like(x, in, 1, "target")
	}
	labels, err := tensor(in, 1, "labels", ir.Int64)
	if err != nil {
		return err
	}
	axis, err := op.Axis(n.Int("axis", 1), len(x.Shape))
	if err != nil {
		return err
	}
	if want := slices.Delete(slices.Clone(x.Shape), axis, axis+1); !slices.Equal(labels.Shape, want) {
		return fmt.Errorf("input labels has shape %v, want %v for scores of shape %v with %d classes", labels.Shape,
			want, x.Shape, rows.n)
	}
	return nil
}

// work is the scratch of one number per row, and of rowParts rows per worker.
func (l rowLoss) work(n *op.Node, in []*ir.Array, workers int) int64 {
	rows, err := l.lanes(n, in[0])
	if err != nil {
		return 0
	}
	return int64(workers)*rowBytes(rows) + block.Bytes[float64](rows.rows())
}

// rowParts is the number of scratch rows: x, target, gradient and spare ones.
const rowParts = 6

func rowBytes(l lanes) int64 { return rowParts * block.Bytes[float64](l.n) }

// rowCost is the approximate cost per element in additions.
const rowCost = 16

func runRows[T number](c *op.Call, l rowLoss, loss func(*op.Node, row[T]) float64) error {
	rows, err := l.lanes(c.Node, c.In[0])
	if err != nil {
		return err
	}
	e := eachRow[T]{lanes: rows, call: c, loss: loss, dx: output[T](c, 1)}
	count := rows.rows()
	if l.labels {
		if e.labels, count, err = readLabels(c, rows); err != nil {
			return err
		}
	}
	if len(c.In) > 3 {
		e.keep, count = ir.View[float32](c.In[3]), 0
		for i := range rows.rows() {
			if _, padding := e.padding(i); !padding {
				count++
			}
		}
	}
	weight := float64(c.Float("weight", 1)) / float64(max(count, 1))
	e.factor = weight * float64(ir.View[float32](c.In[2])[0])
	losses := block.Words[float64](c.Work[int64(c.Pool.Workers())*rowBytes(rows):], rows.rows())
	block.Parallel(c, len(losses), piece/max(1, rows.n*rowCost), rowBytes(rows), func(s block.Scratch, from, to int) {
		var buf [rowParts][]T
		for k := range buf {
			buf[k] = block.Take[T](&s, rows.n)
		}
		for i := from; i < to; i++ {
			losses[i] = e.lossOf(i, &buf)
		}
	})
	if y := output[T](c, 0); y != nil {
		y[0] = T(weight * total(losses))
	}
	return nil
}

// eachRow computes a loss on the rows of a tensor.
type eachRow[T number] struct {
	lanes
	call   *op.Call
	loss   func(*op.Node, row[T]) float64
	labels []int64   // nil if the target has the type of x
	keep   []float32 // 1 for tokens, 0 for padding; nil if all rows count
	dx     []T
	factor float64
}

// padding returns the part of keep that is about row i, and whether all of it is padding.
func (e *eachRow[T]) padding(i int) (keep []float32, all bool) {
	if rows := e.rows(); rows > len(e.keep) {
		keep = e.keep[i/(rows/len(e.keep)):][:1]
	} else {
		size := len(e.keep) / rows
		keep = e.keep[i*size:][:size]
	}
	return keep, !slices.ContainsFunc(keep, func(k float32) bool { return k != 0 })
}

// withoutPadding is row x with zeros for padding, in buf.
func withoutPadding[T number](buf, x []T, keep []float32) []T {
	for k, v := range x {
		if buf[k] = v; keep[k*len(keep)/len(x)] == 0 {
			buf[k] = 0
		}
	}
	return buf
}

// lossOf returns the loss of row i and writes its gradient.
func (e *eachRow[T]) lossOf(i int, buf *[rowParts][]T) float64 {
	r := row[T]{factor: e.factor, spare: [3][]T(buf[3:])}
	if e.dx != nil {
		r.dx = buffer(e.lanes, e.dx, buf[2], i)
		defer put(e.lanes, e.dx, r.dx, i)
	}
	var keep []float32
	if e.keep != nil {
		var all bool
		if keep, all = e.padding(i); all {
			clear(r.dx)
			return 0
		}
	}
	switch {
	case e.labels == nil:
		r.target = part(e.lanes, ir.View[T](e.call.In[1]), buf[1], i)
	case e.labels[i] == ignoreIndex(e.call.Node):
		clear(r.dx)
		return 0
	default:
		r.label = int(e.labels[i])
	}
	r.x = part(e.lanes, ir.View[T](e.call.In[0]), buf[0], i)
	if len(keep) > 1 {
		// Zeros add nothing to the products and norms of a cosine, and have the gradient zero.
		r.x, r.target = withoutPadding(buf[0], r.x, keep), withoutPadding(buf[1], r.target, keep)
	}
	return e.loss(e.call.Node, r)
}

// ignoreIndex is the label of rows that are skipped.
func ignoreIndex(n *op.Node) int64 { return n.Int("ignore_index", -100) }

// readLabels returns the labels and the number of rows that are not skipped.
func readLabels(c *op.Call, rows lanes) (labels []int64, count int, err error) {
	labels = ir.View[int64](c.In[1])
	for i, label := range labels {
		switch {
		case label == ignoreIndex(c.Node):
		case label < 0 || label >= int64(rows.n):
			sample := i / (len(labels) / int(c.In[1].Shape[0]))
			return nil, 0, fmt.Errorf("label %d of sample %d is out of range: the model has %d classes", label,
				sample, rows.n)
		default:
			count++
		}
	}
	return labels, count, nil
}
