package linear

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A contraction is one run of an einsum. While it counts scratch memory, it has no pool.
type contraction struct {
	*einsum
	*scratch
	workers int
	pool    *op.Pool
}

// A factor is a tensor with labelled axes; each label occurs once.
type factor[T computeType] struct {
	labels  []label
	strides []int64 // 0 where it repeats
	data    []T
}

func (f factor[T]) has(l label) bool { return slices.Contains(f.labels, l) }

// stride is the stride along l, 0 if f has no such label.
func (f factor[T]) stride(l label) int64 {
	if i := slices.Index(f.labels, l); i >= 0 {
		return f.strides[i]
	}
	return 0
}

func (f factor[T]) along(labels []label) []int64 {
	out := make([]int64, len(labels))
	for i, l := range labels {
		out[i] = f.stride(l)
	}
	return out
}

func (c *contraction) run(in []*ir.Array, out *ir.Array) error {
	switch {
	case out.DType == ir.Double:
		return contractAll[float64](c, in, out)
	case isFloat(out.DType):
		return contractAll[float32](c, in, out)
	}
	return contractAll[uint64](c, in, out)
}

// contractAll multiplies two factors at a time, those with the smallest product first.
func contractAll[T computeType](c *contraction, in []*ir.Array, out *ir.Array) error {
	var fs []factor[T]
	for i, a := range in {
		fs = append(fs, factorOf[T](c, a, c.terms[i]))
	}
	dst := space[T](c.scratch, out)
	// Greedy: finding the best order takes time that is exponential in the number of operands.
	for len(fs) > 1 {
		i, j := cheapestPair(c, fs)
		rest := slices.Delete(slices.Delete(slices.Clone(fs), j, j+1), i, i+1)
		f, err := contract(c, fs[i], fs[j], neededLabels(c, rest), dst, len(rest) == 0)
		if err != nil {
			return err
		}
		fs = append(rest, f)
	}
	// With one operand no product has written the result.
	if !slices.Equal(fs[0].labels, c.out) || len(in) == 1 {
		gather(c, dst, fs[0], c.out)
	}
	if !c.counts {
		store(out, dst)
	}
	return nil
}

// factorOf labels the axes of a. A label that occurs twice selects the diagonal.
func factorOf[T computeType](c *contraction, a *ir.Array, labels []label) factor[T] {
	f := factor[T]{data: load[T](c.scratch, a)}
	for i, stride := range op.Strides(a.Shape) {
		// An axis of size 1 broadcasts to the size that its label has elsewhere.
		if a.Shape[i] == 1 {
			stride = 0
		}
		// A step along the diagonal is a step along both axes.
		if at := slices.Index(f.labels, labels[i]); at >= 0 {
			f.strides[at] += stride
			continue
		}
		f.labels, f.strides = append(f.labels, labels[i]), append(f.strides, stride)
	}
	return f
}

// cheapestPair is the pair of factors with the smallest product; the first such pair.
func cheapestPair[T computeType](c *contraction, fs []factor[T]) (int, int) {
	if len(fs) == 2 {
		return 0, 1
	}
	best, bi, bj := -1.0, 0, 1
	for j := range fs {
		for i := range j {
			rest := slices.Delete(slices.Delete(slices.Clone(fs), j, j+1), i, i+1)
			size := 1.0
			for _, l := range rolesOf(fs[i], fs[j], neededLabels(c, rest)).all() {
				size *= float64(c.sizes[l])
			}
			if best < 0 || size < best {
				best, bi, bj = size, i, j
			}
		}
	}
	return bi, bj
}

// neededLabels reports which labels the result or one of the other factors needs.
func neededLabels[T computeType](c *contraction, rest []factor[T]) func(label) bool {
	return func(l label) bool {
		return slices.Contains(c.out, l) || slices.ContainsFunc(rest, func(f factor[T]) bool { return f.has(l) })
	}
}

// roles classifies the labels of two factors by their role in the product: for each of batch, a matrix of rows by inner
// times one of inner by cols. Labels of one factor that are not needed later are in none.
type roles struct{ batch, rows, cols, inner []label }

func (r roles) all() []label { return slices.Concat(r.batch, r.rows, r.cols) }

func rolesOf[T computeType](a, b factor[T], needed func(label) bool) (r roles) {
	for _, l := range a.labels {
		switch {
		case b.has(l) && needed(l):
			r.batch = append(r.batch, l)
		case b.has(l):
			r.inner = append(r.inner, l)
		case needed(l):
			r.rows = append(r.rows, l)
		}
	}
	for _, l := range b.labels {
		if !a.has(l) && needed(l) {
			r.cols = append(r.cols, l)
		}
	}
	return r
}

// contract multiplies two factors. The last product is written to dst, if its labels are in the order of the result.
func contract[T computeType](c *contraction, a, b factor[T], needed func(label) bool, dst []T, last bool) (factor[T],
	error) {
	r := rolesOf(a, b, needed)
	// Rows come before columns in a product: with the factors exchanged, the last one may have the order of the
	// result, and needs no copy.
	if swapped := rolesOf(b, a, needed); last && slices.Equal(swapped.all(), c.out) {
		a, b, r = b, a, swapped
	}
	shape := c.shape(r.all())
	// Of the widest type, so that the size in bytes does not overflow for any.
	if err := (ir.Spec{DType: ir.Double, Shape: shape}).Valid(); err != nil {
		return factor[T]{}, fmt.Errorf("intermediate product: %w", err)
	}
	if !last || !slices.Equal(r.all(), c.out) {
		dst = take[T](c.scratch, op.Product(shape))
	}
	// Copies of the operands are needed for this product only; dst, taken before, stays.
	used := c.used
	p := batchProduct[T]{
		Shape: gemm.Shape{M: int(op.Product(c.shape(r.rows))), N: int(op.Product(c.shape(r.cols))),
			K: int(op.Product(c.shape(r.inner)))},
		batch: c.shape(r.batch), c: dst,
	}
	p.a, p.aStrides = matrices(c, a, r.batch, r.rows, r.inner)
	p.b, p.bStrides = matrices(c, b, r.batch, r.inner, r.cols)
	p.multiply(c)
	c.release(used)
	return factor[T]{r.all(), op.Strides(shape), dst}, nil
}

// matrices is f as stacked matrices: in place if one stride covers all rows and another one all columns, else a copy.
func matrices[T computeType](c *contraction, f factor[T], batch, rows, cols []label) (gemm.Matrix[T], []int64) {
	all := slices.Concat(batch, rows, cols)
	_, row, ok := merge(c.shape(rows), f.along(rows))
	_, col, ok2 := merge(c.shape(cols), f.along(cols))
	// A label that is not among them is summed over, which only gather does.
	if !ok || !ok2 || len(all) < len(f.labels) {
		shape := c.shape(all)
		data := take[T](c.scratch, op.Product(shape))
		gather(c, data, f, all)
		f = factor[T]{all, op.Strides(shape), data}
		_, row, _ = merge(c.shape(rows), f.along(rows))
		_, col, _ = merge(c.shape(cols), f.along(cols))
	}
	return gemm.Matrix[T]{Data: f.data, Row: int(row), Col: int(col)}, f.along(batch)
}

// gather writes f to dst, with its axes in the given order. Labels that are not in it are summed over.
func gather[T computeType](c *contraction, dst []T, f factor[T], order []label) {
	if c.counts || len(dst) == 0 {
		return
	}
	var lone []label
	for _, l := range f.labels {
		if !slices.Contains(order, l) {
			lone = append(lone, l)
		}
	}
	dims, strides := c.shape(lone), f.along(lone)
	shape, steps := c.shape(order), f.along(order)
	width, step := int64(1), int64(0)
	if n := len(order) - 1; n >= 0 {
		width, step = shape[n], steps[n]
		shape, steps = shape[:n], steps[:n]
	}
	c.pool.Rows(len(dst)/int(width), max(1, (1<<13)/int(width)), func(from, to int) {
		for i := from; i < to; i++ {
			at := place(int64(i), shape, steps)
			for j := range width {
				dst[int64(i)*width+j] = total(f.data, at+j*step, dims, strides)
			}
		}
	})
}

// place is the offset of element i of a shape in a tensor with these strides.
func place(i int64, shape, strides []int64) int64 {
	at := int64(0)
	for axis := len(shape) - 1; axis >= 0; axis-- {
		at += i % shape[axis] * strides[axis]
		i /= shape[axis]
	}
	return at
}

// total is the sum of the elements along some axes, starting at offset at.
func total[T computeType](data []T, at int64, dims, strides []int64) T {
	if len(dims) == 0 {
		return data[at]
	}
	sum := T(0)
	for i := range dims[0] {
		sum += total(data, at+i*strides[0], dims[1:], strides[1:])
	}
	return sum
}
