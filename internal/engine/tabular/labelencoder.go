package tabular

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// encoders are the operators that look elements up: LabelEncoder, CategoryMapper, OneHotEncoder.
func encoders() []op.Op {
	return []op.Op{
		{Type: "LabelEncoder", Since: 1, Shape: encoderShape(newIndexEncoder), Run: runEncoder(newIndexEncoder),
			Prepare: prepare(newIndexEncoder)},
		{Type: "LabelEncoder", Since: 2, Shape: encoderShape(newLabelEncoder), Run: runEncoder(newLabelEncoder),
			Prepare: prepare(newLabelEncoder)},
		{Type: "CategoryMapper", Since: 1, Shape: encoderShape(newCategoryMapper), Run: runEncoder(newCategoryMapper),
			Prepare: prepare(newCategoryMapper)},
		{Type: "OneHotEncoder", Since: 1, Shape: oneHotShape, Run: runOneHot},
	}
}

// An encoder maps each element to the value at its key's position, else to the fallback. A bidirectional one has a
// dictionary per type of input.
type encoder struct{ ways []*dictionary }

type dictionary struct {
	from     ir.DType // String, Int64 for all integers, Float for all others
	texts    map[string]int
	ints     map[int64]int
	floats   map[float64]int
	nan      int // position of NaN, -1 if it is not a key
	values   *ir.Array
	fallback *ir.Array
}

// newDictionary reads keys; the last one of equal keys is used.
func newDictionary(keys, values, fallback *ir.Array) (*dictionary, error) {
	if keys.Elems() != values.Elems() || fallback.Elems() != 1 || fallback.DType != values.DType {
		return nil, fmt.Errorf("keys %s, values %s and default %s do not match", keys, values, fallback)
	}
	if values.DType != ir.String {
		if err := number.Check(values.DType); err != nil {
			return nil, err
		}
	}
	d := &dictionary{from: kindOf(keys.DType), nan: -1, values: values, fallback: fallback}
	switch d.from {
	case ir.String:
		d.texts = positions(keys.Text)
	case ir.Int64:
		ints, err := op.Ints(keys)
		if err != nil {
			return nil, err
		}
		d.ints = positions(ints)
	default:
		floats, err := elements(keys)
		if err != nil {
			return nil, err
		}
		d.floats = positions(floats)
		for i, x := range floats {
			if math.IsNaN(x) {
				d.nan = i
			}
		}
	}
	return d, nil
}

func kindOf(dt ir.DType) ir.DType {
	switch {
	case dt == ir.String:
		return ir.String
	case dt.IsFloat():
		return ir.Float
	}
	return ir.Int64
}

func positions[T comparable](keys []T) map[T]int {
	m := make(map[T]int, len(keys))
	for i, k := range keys {
		m[k] = i
	}
	return m
}

// list is the attribute with that prefix, of any type.
func list(n *op.Node, stem string) (*ir.Array, error) {
	if a := n.Array(stem + "_tensor"); a != nil {
		return a, nil
	}
	if xs := n.Texts(stem + "_strings"); len(xs) > 0 {
		return ir.TextOf(xs, int64(len(xs))), nil
	}
	if xs := n.Ints(stem + "_int64s"); len(xs) > 0 {
		return ir.ArrayOf(xs, int64(len(xs))), nil
	}
	if xs := n.Floats(stem + "_floats"); len(xs) > 0 {
		return ir.ArrayOf(xs, int64(len(xs))), nil
	}
	return nil, fmt.Errorf("attributes %s_* are missing", stem)
}

// defaultOf is ONNX's default for values of that type.
func defaultOf(n *op.Node, dt ir.DType) *ir.Array {
	if a := n.Array("default_tensor"); a != nil {
		return a
	}
	a := ir.NewArray(dt)
	switch kind := kindOf(dt); {
	case kind == ir.String:
		a.Text[0] = n.Text("default_string", "_Unused")
	case dt == ir.Int64: // a float64 would round it above 2^53
		ir.View[int64](a)[0] = n.Int("default_int64", -1)
	case kind == ir.Int64:
		number.Write(a, 0, []float64{float64(n.Int("default_int64", -1))})
	default:
		number.Write(a, 0, []float64{float64(n.Float("default_float", float32(math.Copysign(0, -1))))})
	}
	return a
}

func newLabelEncoder(n *op.Node) (*encoder, error) {
	keys, err := list(n, "keys")
	if err != nil {
		return nil, err
	}
	values, err := list(n, "values")
	if err != nil {
		return nil, err
	}
	d, err := newDictionary(keys, values, defaultOf(n, values.DType))
	return &encoder{[]*dictionary{d}}, err
}

// newCategoryMapper maps strings to numbers and numbers to strings.
func newCategoryMapper(n *op.Node) (*encoder, error) {
	return bothWays(n, n.Texts("cats_strings"), n.Ints("cats_int64s"))
}

// newIndexEncoder is version 1 of LabelEncoder: the numbers are positions.
func newIndexEncoder(n *op.Node) (*encoder, error) {
	texts := n.Texts("classes_strings")
	ints := make([]int64, len(texts))
	for i := range ints {
		ints[i] = int64(i)
	}
	return bothWays(n, texts, ints)
}

func bothWays(n *op.Node, texts []string, ints []int64) (*encoder, error) {
	if len(texts) == 0 {
		return nil, errors.New("no categories")
	}
	t, i := ir.TextOf(texts, int64(len(texts))), ir.ArrayOf(ints, int64(len(ints)))
	up, err := newDictionary(t, i, defaultOf(n, ir.Int64))
	if err != nil {
		return nil, err
	}
	down, err := newDictionary(i, t, defaultOf(n, ir.String))
	return &encoder{[]*dictionary{up, down}}, err
}

// way is the dictionary for elements of x.
func (e *encoder) way(x *ir.Array) (*dictionary, error) {
	if x.DType != ir.String {
		if err := number.Check(x.DType); err != nil {
			return nil, err
		}
	}
	for _, d := range e.ways {
		if d.from == kindOf(x.DType) {
			return d, nil
		}
	}
	return nil, fmt.Errorf("X is %s, keys are %s", x, e.ways[0].from)
}

func encoderShape(build func(*op.Node) (*encoder, error)) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		e, err := prepared(n, build)
		if err != nil {
			return nil, err
		}
		x, err := op.Tensor(in, 0, "X")
		if err != nil {
			return nil, err
		}
		d, err := e.way(x)
		if err != nil {
			return nil, err
		}
		return op.One(d.values.DType, x.Shape...)
	}
}

func runEncoder(build func(*op.Node) (*encoder, error)) func(*op.Call) error {
	return func(c *op.Call) error {
		e, err := prepared(c.Node, build)
		if err != nil {
			return err
		}
		d, err := e.way(c.In[0])
		if err != nil {
			return err
		}
		return d.translate(c.Out[0], c.In[0])
	}
}

func (d *dictionary) translate(y, x *ir.Array) error {
	switch d.from {
	case ir.String:
		for i, s := range x.Text {
			at, ok := d.texts[s]
			d.put(y, i, at, ok)
		}
	case ir.Int64:
		ints, err := op.Ints(x)
		if err != nil {
			return err
		}
		for i, k := range ints {
			at, ok := d.ints[k]
			d.put(y, i, at, ok)
		}
	default:
		var v [1]float64
		for i := range int(x.Elems()) {
			number.Read(v[:], x, i)
			at, ok := d.floats[v[0]]
			if math.IsNaN(v[0]) {
				at, ok = d.nan, d.nan >= 0
			}
			d.put(y, i, at, ok)
		}
	}
	return nil
}

// put writes the value at that position, or the fallback, to element i of y.
func (d *dictionary) put(y *ir.Array, i, at int, found bool) {
	from := d.values
	if !found {
		from, at = d.fallback, 0
	}
	if y.DType == ir.String {
		y.Text[i] = from.Text[at]
		return
	}
	size := int(y.DType.Bits() / 8)
	copy(y.Data[i*size:(i+1)*size], from.Data[at*size:])
}

// categories are those of OneHotEncoder; numbers of every type are looked up as integers.
func categories(n *op.Node, x *ir.Array) (count int, find func(i int) (int, bool), err error) {
	texts, ints := n.Texts("cats_strings"), n.Ints("cats_int64s")
	switch {
	case len(texts) > 0 && x.DType == ir.String:
		at := positions(texts)
		return len(texts), func(i int) (int, bool) { k, ok := at[x.Text[i]]; return k, ok }, nil
	case len(ints) > 0 && x.DType != ir.String && number.Check(x.DType) == nil:
		at := positions(ints)
		return len(ints), func(i int) (int, bool) {
			if x.DType == ir.Int64 { // a float64 would round it above 2^53
				k, ok := at[ir.View[int64](x)[i]]
				return k, ok
			}
			var v [1]float64
			number.Read(v[:], x, i)
			k, ok := at[int64(v[0])]
			return k, ok
		}, nil
	}
	return 0, nil, fmt.Errorf("no categories for %s", x)
}

func oneHotShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	count, _, err := categories(n, x)
	if err != nil {
		return nil, err
	}
	return op.One(ir.Float, append(slices.Clone(x.Shape), int64(count))...)
}

func runOneHot(c *op.Call) error {
	count, find, err := categories(c.Node, c.In[0])
	if err != nil {
		return err
	}
	y := ir.View[float32](c.Out[0])
	clear(y)
	for i := range int(c.In[0].Elems()) {
		at, ok := find(i)
		if ok {
			y[i*count+at] = 1
		} else if !c.Bool("zeros", true) {
			return fmt.Errorf("element %d is not a category", i)
		}
	}
	return nil
}
