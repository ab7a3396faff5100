package tabular

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
)

// An operatorCase is a node with its inputs and the expected outputs, which were computed once by the source.
type operatorCase struct {
	name     string
	version  int64
	source   string
	attrs    []*ir.Attr
	arrays   map[string]*ir.Array // tensor attributes
	in, want []*ir.Array
}

const (
	runtime = "ONNX Runtime 1.31.1"
	// where ONNX Runtime has no kernel for the data type or ignores the post_transform
	reference = "ReferenceEvaluator of onnx 1.23.2"

	// mixed is for two classes with votes only for the first one, where the specification has no rule.
	mixed = "labels of ONNX Runtime 1.31.1, scores of onnx 1.23.2's ReferenceEvaluator"

	// asFloat is for data types of the specification that ONNX Runtime has no kernel for.
	asFloat = "ONNX Runtime 1.31.1, X converted to float"

	// transformed is for post_transforms where ONNX Runtime deviates from the specification: it approximates PROBIT,
	// ignores the attribute of SVMRegressor, and exchanges SOFTMAX and LOGISTIC of TreeEnsemble.
	transformed = "ONNX Runtime 1.31.1 without post_transform, then the exact transform"
)

// checkCases runs the node of each case; floats may differ by a few units of float32's precision.
func checkCases(t *testing.T, typ string, cases []operatorCase) {
	t.Helper()
	for _, c := range cases {
		out, err := run(typ, c.version, c.attrs, c.arrays, c.in...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i, want := range c.want {
			if !equalArrays(out[i], want) {
				t.Errorf("%s: output %d is %v %v, want %v %v (%s)", c.name, i, out[i], contents(out[i]), want,
					contents(want), c.source)
			}
		}
	}
}

func equalArrays(got, want *ir.Array) bool {
	if got == nil || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return false
	}
	switch want.DType {
	case ir.String:
		return slices.Equal(got.Text, want.Text)
	case ir.Float, ir.Double:
		g, w := contents(got).([]float64), contents(want).([]float64)
		return slices.EqualFunc(g, w, func(g, w float64) bool {
			return g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= 4e-6*max(1, math.Abs(w))
		})
	}
	return bytes.Equal(got.Data, want.Data)
}

func contents(a *ir.Array) any {
	switch {
	case a == nil:
		return nil
	case a.DType == ir.String:
		return a.Text
	case a.DType == ir.Int64:
		return ir.View[int64](a)
	}
	xs := make([]float64, a.Elems())
	number.Read(xs, a, 0)
	return xs
}

// halves is a float16 tensor.
func halves(xs []float32, shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Float16, shape...)
	for i, x := range xs {
		number.Write(a, i, []float64{float64(x)})
	}
	return a
}

var (
	nan32 = float32(math.NaN())
	nan64 = math.NaN()
	inf32 = float32(math.Inf(1))
)
