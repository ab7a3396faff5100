package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A place is the layout of samples in an input of the model.
type place struct {
	batched bool    // the input's first axis is samples
	fixed   int64   // batch size of the model; 0 if open
	shape   []int64 // of one sample, in the model
}

// fit finds the layout of samples of shape row in an input of these axes: a row of its batch, else the whole input;
// with the same shape, else with axes of size 1 inserted or removed. A sample that is a batch of one is a row of an
// open batch, too.
func fit(dims []ir.Dim, row []int64) (place, bool) {
	if dims == nil {
		return place{batched: true, shape: row}, true
	}
	if len(dims) > 0 && len(row) == len(dims) && row[0] == 1 && !dims[0].Known() {
		row = row[1:]
	}
	for _, match := range []func([]ir.Dim, []int64) ([]int64, bool){fitExactly, fitSqueezed} {
		if len(dims) > 0 {
			if shape, ok := match(dims[1:], row); ok {
				return place{batched: true, fixed: fixedSize(dims[0]), shape: shape}, true
			}
		}
		if shape, ok := match(dims, row); ok {
			return place{shape: shape}, true
		}
	}
	return place{}, false
}

func fixedSize(d ir.Dim) int64 {
	if d.Known() {
		return d.N
	}
	return 0
}

func fitExactly(dims []ir.Dim, row []int64) ([]int64, bool) {
	if len(dims) != len(row) {
		return nil, false
	}
	for i, d := range dims {
		if d.Known() && d.N != row[i] {
			return nil, false
		}
	}
	return row, true
}

func fitSqueezed(dims []ir.Dim, row []int64) ([]int64, bool) {
	isOne := func(d ir.Dim) bool { return d.Known() && d.N == 1 }
	rest := slices.DeleteFunc(slices.Clone(row), func(n int64) bool { return n == 1 })
	if _, ok := fitExactly(slices.DeleteFunc(slices.Clone(dims), isOne), rest); !ok {
		return nil, false
	}
	shape := make([]int64, len(dims))
	for i, d := range dims {
		if shape[i] = 1; !isOne(d) {
			// Without axes of size 1 both have the same axes in the same order.
			shape[i], rest = rest[0], rest[1:]
		}
	}
	return shape, true
}

// elems is the number of elements of a shape.
func elems(shape []int64) int64 { return ir.Spec{Shape: shape}.Elems() }

// typeText formats a type as in ONNX, with ? for unknown axes.
func typeText(t *ir.Type) string {
	if t == nil {
		return "of unknown type"
	}
	if t.Shape == nil {
		return t.Elem.String() + "[...]"
	}
	dims := make([]string, len(t.Shape))
	for i, d := range t.Shape {
		switch {
		case d.Known():
			dims[i] = fmt.Sprint(d.N)
		case d.Param != "":
			dims[i] = d.Param
		default:
			dims[i] = "?"
		}
	}
	return fmt.Sprintf("%s[%s]", t.Elem, strings.Join(dims, ","))
}
