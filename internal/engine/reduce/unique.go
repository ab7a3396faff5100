package reduce

import (
	"cmp"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func uniqueOps() []op.Op {
	return []op.Op{{Type: "Unique", Since: 11, Run: runUnique}}
}

// runUnique finds the distinct elements, or the distinct slices along an axis.
func runUnique(c *op.Call) error {
	x, err := unpacked.Tensor(c.In, 0, "X")
	if err != nil {
		return err
	}
	l := lanes{1, int(x.Elems()), 1}
	axis := -1
	if c.Has("axis") {
		if axis, err = op.Axis(c.Int("axis", 0), len(x.Shape)); err != nil {
			return err
		}
		l = lanesOf(x, axis)
	}
	groups := group(l, comparer(x), c.Bool("sorted", true))
	shape := []int64{int64(len(groups))}
	if axis >= 0 {
		shape = slices.Clone(x.Shape)
		shape[axis] = int64(len(groups))
	}
	y, err := c.Make(0, x.DType, shape...)
	if err != nil {
		return err
	}
	return writeUnique(c, y, x, l, groups)
}

// group collects the indices of equal slices, in ascending order each, and orders the groups by the slices' values or
// by their first indices.
func group(l lanes, elements func(i, j int) int, sorted bool) [][]int {
	order := make([]int, l.n)
	for i := range order {
		order[i] = i
	}
	slicesOf := elements
	if l.outer*l.inner != 1 {
		slicesOf = func(i, j int) int { return compareSlices(l, elements, i, j) }
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(slicesOf(i, j), i-j) })
	var groups [][]int
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && slicesOf(order[from], order[to]) == 0 {
			to++
		}
		groups = append(groups, order[from:to])
		from = to
	}
	if !sorted {
		slices.SortFunc(groups, func(a, b []int) int { return a[0] - b[0] })
	}
	return groups
}

// compareSlices compares the elements of slices i and j in order.
func compareSlices(l lanes, elements func(i, j int) int, i, j int) int {
	for o := range l.outer {
		for k := range l.inner {
			if d := elements((o*l.n+i)*l.inner+k, (o*l.n+j)*l.inner+k); d != 0 {
				return d
			}
		}
	}
	return 0
}

// comparer compares two elements of x. NaN equals NaN and is the greatest, as in NumPy.
func comparer(x *ir.Array) func(i, j int) int {
	switch x.DType {
	case ir.String:
		return func(i, j int) int { return cmp.Compare(x.Text[i], x.Text[j]) }
	case ir.Float, ir.Float16, ir.BFloat16:
		return compareIn[float32](x)
	case ir.Double:
		return compareIn[float64](x)
	case ir.Int8, ir.Int16, ir.Int32, ir.Int64:
		return compareIn[int64](x)
	case ir.Complex64:
		v := ir.View[complex64](x)
		return func(i, j int) int {
			return cmp.Or(compare(real(v[i]), real(v[j])), compare(imag(v[i]), imag(v[j])))
		}
	case ir.Complex128:
		v := ir.View[complex128](x)
		return func(i, j int) int {
			return cmp.Or(compare(real(v[i]), real(v[j])), compare(imag(v[i]), imag(v[j])))
		}
	}
	return compareIn[uint64](x) // Bool too
}

func compareIn[T numeric](x *ir.Array) func(i, j int) int {
	r := block.Read[T](x)
	v := r.Direct()
	if v == nil {
		n := int(x.Elems())
		v = r.Block(make([]T, n), 0, n)
	}
	return func(i, j int) int { return compare(v[i], v[j]) }
}

func compare[T numeric](a, b T) int {
	switch {
	case a < b || a == a && b != b:
		return -1
	case a > b || a != a && b == b:
		return 1
	}
	return 0
}

// writeUnique writes one slice of each group, their first indices, the group of each slice, and the sizes of the
// groups.
func writeUnique(c *op.Call, y, x *ir.Array, l lanes, groups [][]int) error {
	var lists [3][]int64 // nil without consumers
	for i, n := range []int{len(groups), l.n, len(groups)} {
		if !c.HasConsumer(1 + i) {
			continue
		}
		a, err := c.Make(1+i, ir.Int64, int64(n))
		if err != nil {
			return err
		}
		lists[i] = ir.View[int64](a)
	}
	indices, inverse, counts := lists[0], lists[1], lists[2]
	size := int(x.DType.Bits()/8) * l.inner
	for g, members := range groups {
		for o := range l.outer {
			to, from := o*len(groups)+g, o*l.n+members[0]
			if x.DType == ir.String {
				copy(y.Text[to*l.inner:], x.Text[from*l.inner:][:l.inner])
			} else {
				copy(y.Data[to*size:], x.Data[from*size:][:size])
			}
		}
		if indices != nil {
			indices[g] = int64(members[0])
		}
		if counts != nil {
			counts[g] = int64(len(members))
		}
		for _, i := range members {
			if inverse != nil {
				inverse[i] = int64(g)
			}
		}
	}
	return nil
}
