package conv

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// averagePools are the pools that sum. The defaults of later attributes (ceil_mode, dilations, count_include_pad) equal
// the earlier semantics.
func averagePools() []op.Op {
	return wide(
		op.Op{Type: "AveragePool", Since: 7, Shape: averageTypes().shape, Run: averageTypes().run},
		op.Op{Type: "LpPool", Since: 2, Shape: lpShape, Run: lpTypes().run},
	)
}

func averageTypes() byType {
	return byType{ir.Float: averagePool[float32], ir.Double: averagePool[float64]}
}

func lpTypes() byType {
	return byType{ir.Float: lpPool[float32], ir.Double: lpPool[float64]}
}

func lpShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := power(n); err != nil {
		return nil, err
	}
	return lpTypes().shape(n, in)
}

// A sum is a pool that sums the elements after lift, and converts row o of the sums into the result with finish.
type sum[T float] struct {
	lift   func(to, x []T)
	finish func(row []T, o int)
}

func averagePool[T float](c *op.Call) error {
	return sumPool(c, func(w *window) sum[T] {
		padding := c.Bool("count_include_pad", false)
		// A window is a box, so the number of its counted elements is a product: along the last axis, which is the same
		// in every row, times that of the other axes, which is the same within a row.
		last := w.last()
		along := make([]T, w.out[last])
		for o := range along {
			along[o] = T(w.counted(last, o, padding))
		}
		return sum[T]{arithmeticOf[T]().add, func(row []T, o int) {
			n := T(w.countedRows(o, padding))
			for i := range row {
				row[i] /= n * along[i]
			}
		}}
	})
}

// countedRows is the number of rows that count for row o of the output.
func (w *window) countedRows(o int, padding bool) int {
	n := 1
	for i := w.last() - 1; i >= 0; i-- {
		n *= w.counted(i, o%w.out[i], padding)
		o /= w.out[i]
	}
	return n
}

func lpPool[T float](c *op.Call) error {
	p, err := power(c.Node)
	if err != nil {
		return err
	}
	return sumPool(c, func(w *window) sum[T] {
		return sum[T]{addPower[T](p), func(row []T, _ int) { root(row, p) }}
	})
}

// power is the attribute p of a norm.
func power(n *op.Node) (float64, error) {
	p := n.Int("p", 2)
	if p < 1 {
		return 0, fmt.Errorf("p is %d, want at least 1", p)
	}
	return float64(p), nil
}

func addPower[T float](p float64) func(to, x []T) {
	switch p {
	case 1:
		return func(to, x []T) {
			for i, v := range x {
				to[i] += T(math.Abs(float64(v)))
			}
		}
	case 2:
		return func(to, x []T) {
			for i, v := range x {
				to[i] += v * v
			}
		}
	}
	return func(to, x []T) {
		for i, v := range x {
			to[i] += T(math.Pow(math.Abs(float64(v)), p))
		}
	}
}

// root takes the p-th root of sums of powers.
func root[T float](sums []T, p float64) {
	for i, v := range sums {
		switch p {
		case 1:
		case 2:
			sums[i] = T(math.Sqrt(float64(v)))
		default:
			sums[i] = T(math.Pow(float64(v), 1/p))
		}
	}
}

// sumPool pools each channel: first along the rows of a window, then along the last axis.
func sumPool[T float](c *op.Call, of func(*window) sum[T]) error {
	x, y := ir.View[T](c.In[0]), ir.View[T](c.Out[0])
	w, err := poolWindow(c.Node, c.In[0].Shape[2:])
	if err != nil || len(y) == 0 {
		return err
	}
	s, a := of(w), arithmeticOf[T]()
	w.eachChannel(c.Pool, len(y)/w.outLen(), func(ch int) {
		sumOver(w, a, s, part(y, ch, w.outLen()), part(x, ch, w.inLen()))
	})
	return nil
}

func sumOver[T float](w *window, a arithmetic[T], s sum[T], y, x []T) {
	var rows []coveredRow
	last := w.last()
	line, strided := make([]T, w.in[last]), make([]T, w.out[last])
	for o := range len(y) / w.out[last] {
		rows = w.rows(rows, o)
		// Rows of a window are added first, for all columns at once, so that overlapping windows of a row share these
		// sums: kernel rows + columns additions instead of rows · columns.
		clear(line)
		for _, r := range rows {
			s.lift(line, x[r.off:r.off+len(line)])
		}
		row := part(y, o, w.out[last])
		clear(row)
		w.alongLast(func(lo, hi, from int) { a.addStrided(row[lo:hi], line[from:], strided, w.stride[last]) })
		s.finish(row, o)
	}
}

// alongLast calls f for each kernel tap along the last axis: the outputs for which it is inside the input, and the
// position of the first of them.
func (w *window) alongLast(f func(lo, hi, from int)) {
	for k := range w.kernel[w.last()] {
		if lo, hi, from := w.taps(w.last(), k); lo < hi {
			f(lo, hi, from)
		}
	}
}

// addStrided adds elements of x that are stride apart to y. buf is a buffer as large as y.
func (a arithmetic[T]) addStrided(y, x, buf []T, stride int) {
	if stride > 1 {
		a.stridedCopy(buf[:len(y)], x, stride)
		x = buf
	}
	a.add(y, x[:len(y)])
}
