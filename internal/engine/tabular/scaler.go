package tabular

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// scalings are the operators that transform numbers one by one or row by row.
func scalings() []op.Op {
	return []op.Op{
		{Type: "Scaler", Since: 1, Shape: scalerShape, Run: runScaler},
		{Type: "Normalizer", Since: 1, Shape: normalizerShape, Run: runNormalizer},
		{Type: "Binarizer", Since: 1, Shape: binarizerShape, Run: runBinarizer, InPlace: []int{0}},
		{Type: "Imputer", Since: 1, Shape: imputerShape, Run: runImputer, InPlace: []int{0}},
	}
}

// width is the size of a's last axis: its features.
func width(a *ir.Array) int {
	if len(a.Shape) == 0 {
		return 1
	}
	return int(a.Shape[len(a.Shape)-1])
}

// rows calls f with each row of a, which f may modify.
func rows(a *ir.Array, f func(i int, row []float64)) {
	if a.Elems() == 0 {
		return // rows may have any length
	}
	row := make([]float64, width(a))
	for i := 0; i < int(a.Elems()); i += len(row) {
		number.Read(row, a, i)
		f(i, row)
	}
}

// perFeature is a list attribute with one value per feature or one for all.
func perFeature(n *op.Node, name string, features int, def float32) ([]float32, error) {
	list := n.Floats(name)
	if len(list) == 0 {
		list = []float32{def}
	}
	if len(list) != 1 && len(list) != features {
		return nil, fmt.Errorf("%d values in %s for %d features", len(list), name, features)
	}
	return list, nil
}

func scalerShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := numbers(in, 0, "X")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"offset", "scale"} {
		if _, err := perFeature(n, name, width(x), 0); err != nil {
			return nil, err
		}
	}
	return op.One(ir.Float, x.Shape...)
}

func runScaler(c *op.Call) error {
	x := c.In[0]
	offset, err := perFeature(c.Node, "offset", width(x), 0)
	if err != nil {
		return err
	}
	scale, err := perFeature(c.Node, "scale", width(x), 1)
	if err != nil {
		return err
	}
	rows(x, func(i int, row []float64) {
		for k := range row {
			row[k] = (row[k] - float64(offset[k%len(offset)])) * float64(scale[k%len(scale)])
		}
		number.Write(c.Out[0], i, row)
	})
	return nil
}

// norms divide a row by its maximum, by the sum of its magnitudes, or by its Euclidean norm.
var norms = map[string]func(row []float64) float64{
	"MAX": func(row []float64) float64 {
		top := math.Inf(-1)
		for _, x := range row {
			top = max(top, x)
		}
		return top
	},
	"L1": func(row []float64) float64 {
		sum := 0.0
		for _, x := range row {
			sum += math.Abs(x)
		}
		return sum
	},
	"L2": func(row []float64) float64 {
		sum := 0.0
		for _, x := range row {
			sum += float64(x * x)
		}
		return math.Sqrt(sum)
	},
}

func normalizerShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, _, _, err := table(in)
	if err != nil {
		return nil, err
	}
	if norms[n.Text("norm", "MAX")] == nil {
		return nil, fmt.Errorf("norm is %q, want MAX, L1 or L2", n.Text("norm", "MAX"))
	}
	return op.One(ir.Float, x.Shape...)
}

func runNormalizer(c *op.Call) error {
	norm := norms[c.Text("norm", "MAX")]
	rows(c.In[0], func(i int, row []float64) {
		if d := norm(row); d != 0 {
			for k := range row {
				row[k] /= d
			}
		}
		number.Write(c.Out[0], i, row)
	})
	return nil
}

func binarizerShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := numbers(in, 0, "X")
	if err != nil {
		return nil, err
	}
	return op.One(x.DType, x.Shape...)
}

func runBinarizer(c *op.Call) error {
	threshold := float64(c.Float("threshold", 0))
	rows(c.In[0], func(i int, row []float64) {
		for k, x := range row {
			if row[k] = 0; x > threshold {
				row[k] = 1
			}
		}
		number.Write(c.Out[0], i, row)
	})
	return nil
}

func imputerShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := numbers(in, 0, "X")
	if err != nil {
		return nil, err
	}
	count := len(n.Ints("imputed_value_int64s"))
	if x.DType.IsFloat() {
		count = len(n.Floats("imputed_value_floats"))
	}
	if count != 1 && count != width(x) {
		return nil, fmt.Errorf("%d imputed values for %d features of %s", count, width(x), x.DType)
	}
	switch x.DType {
	case ir.Int32:
		// The standard has no rule for them, and ONNX Runtime no Imputer of int32: the low bits would be another number.
		for _, v := range n.Ints("imputed_value_int64s") {
			if v != int64(int32(v)) {
				return nil, fmt.Errorf("imputed value %d is no int32, the type of X", v)
			}
		}
	case ir.Float, ir.Double, ir.Int64:
	default:
		return nil, fmt.Errorf("X is %s, want float, double, int32 or int64", x)
	}
	return op.One(x.DType, x.Shape...)
}

func runImputer(c *op.Call) error {
	replaced, values := c.Float("replaced_value_float", 0), c.Floats("imputed_value_floats")
	replacedInt, ints := c.Int("replaced_value_int64", 0), c.Ints("imputed_value_int64s")
	switch c.In[0].DType {
	case ir.Float:
		impute[float32](c, replaced, values)
	case ir.Double:
		impute[float64](c, float64(replaced), values)
	case ir.Int32:
		impute[int32](c, replacedInt, ints)
	case ir.Int64:
		impute[int64](c, replacedInt, ints)
	}
	return nil
}

type imputed interface {
	float32 | float64 | int32 | int64
}

// impute replaces the values to be replaced, possibly NaN, by the feature's imputed value. W is the wider one of the
// element type and the attribute's: an int32 of the low bits of an int64 is not equal to it.
func impute[T, W, A imputed](c *op.Call, replaced W, values []A) {
	x, y, features := ir.View[T](c.In[0]), ir.View[T](c.Out[0]), width(c.In[0])
	nan := replaced != replaced
	for i, v := range x {
		if W(v) == replaced || nan && v != v {
			v = T(values[i%features%len(values)])
		}
		y[i] = v
	}
}
