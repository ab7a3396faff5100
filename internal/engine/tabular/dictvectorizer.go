package tabular

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// maps are the operators that combine features: from maps, to maps, and from several tensors.
func maps() []op.Op {
	return []op.Op{
		{Type: "ZipMap", Since: 1, Run: runZipMap},
		{Type: "DictVectorizer", Since: 1, Run: runDictVectorizer},
		{Type: "CastMap", Since: 1, Run: runCastMap},
		{Type: "FeatureVectorizer", Since: 1, Shape: featuresShape, Run: runFeatures},
		{Type: "ArrayFeatureExtractor", Since: 1, Shape: extractShape, Run: runExtract},
	}
}

// runZipMap makes a map of each row, all with the same keys.
func runZipMap(c *op.Call) error {
	x, count, features, err := table(c.In)
	if err != nil {
		return err
	}
	if x.DType != ir.Float {
		return fmt.Errorf("X is %s, want floats", x)
	}
	labels, err := classesOf(c.Node, "classlabels_int64s", "classlabels_strings")
	if err != nil {
		return err
	}
	if labels.len() != features {
		return fmt.Errorf("X is %s, want %d keys", x, labels.len())
	}
	keys := ir.NewArray(labels.dtype(), int64(features))
	for i := range features {
		labels.put(keys, i, i)
	}
	values := slices.Clone(ir.View[float32](x))
	rows := make([]*ir.Array, count)
	for i := range rows {
		row := ir.ArrayOf(values[i*features:(i+1)*features], int64(features))
		rows[i] = &ir.Array{Kind: ir.Map, Keys: keys, Items: []*ir.Array{row}}
	}
	c.Out[0] = &ir.Array{Kind: ir.Sequence, Items: rows}
	return nil
}

// mapped is input X, a map.
func mapped(c *op.Call) (keys, values *ir.Array, err error) {
	x, err := op.Arg(c.In, 0, "X")
	if err != nil {
		return nil, nil, err
	}
	if x.Kind != ir.Map || x.Keys == nil || len(x.Items) != 1 || x.Items[0].Elems() != x.Keys.Elems() {
		return nil, nil, fmt.Errorf("X is %s, want a map", x)
	}
	return x.Keys, x.Items[0], nil
}

// runDictVectorizer returns one row: the map's values for the keys of the vocabulary, zeros for missing ones.
func runDictVectorizer(c *op.Call) error {
	keys, values, err := mapped(c)
	if err != nil {
		return err
	}
	texts, ints := c.Texts("string_vocabulary"), c.Ints("int64_vocabulary")
	y, err := c.Make(0, values.DType, 1, int64(max(len(texts), len(ints))))
	if err != nil {
		return err
	}
	size := int(values.DType.Bits() / 8)
	put := func(to, from int) {
		if values.DType == ir.String {
			y.Text[to] = values.Text[from]
			return
		}
		copy(y.Data[to*size:(to+1)*size], values.Data[from*size:])
	}
	switch {
	case keys.DType == ir.String && len(texts) > 0:
		return place(positions(texts), keys.Text, put)
	case keys.DType == ir.Int64 && len(ints) > 0:
		return place(positions(ints), ir.View[int64](keys), put)
	}
	return fmt.Errorf("no vocabulary for keys of %s", keys.DType)
}

func place[T comparable](at map[T]int, keys []T, put func(to, from int)) error {
	for i, k := range keys {
		to, ok := at[k]
		if !ok {
			return fmt.Errorf("key %v is not in the vocabulary", k)
		}
		put(to, i)
	}
	return nil
}

// runCastMap returns one row: the values in the order of their keys or, if the map is sparse, at the indices given by
// the keys.
func runCastMap(c *op.Call) error {
	keys, values, err := mapped(c)
	if err != nil {
		return err
	}
	if keys.DType != ir.Int64 || values.DType != ir.Float && values.DType != ir.String {
		return fmt.Errorf("X maps %s to %s, want int64 to float or string", keys.DType, values.DType)
	}
	numbers := ir.View[int64](keys)
	order := make([]int, len(numbers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if numbers[a] < numbers[b] {
			return -1
		}
		return 1
	})
	size, sparse := int64(len(order)), c.Text("map_form", "DENSE") == "SPARSE"
	if sparse {
		size = c.Int("max_map", 1)
	}
	if size < 0 || size > 1<<31 {
		return fmt.Errorf("max_map %d is out of range", size)
	}
	dt, put, err := castTo(c.Text("cast_to", "TO_FLOAT"))
	if err != nil {
		return err
	}
	y, err := c.Make(0, dt, 1, size)
	if err != nil {
		return err
	}
	for to, from := range order {
		if sparse {
			if numbers[from] < 0 || numbers[from] >= size {
				return fmt.Errorf("key %d is not below max_map %d", numbers[from], size)
			}
			to = int(numbers[from])
		}
		if err := put(y, to, values, from); err != nil {
			return err
		}
	}
	return nil
}

// castTo returns the type of the output and the conversion of an element.
func castTo(cast string) (ir.DType, func(y *ir.Array, to int, x *ir.Array, from int) error, error) {
	switch cast {
	case "TO_STRING":
		return ir.String, func(y *ir.Array, to int, x *ir.Array, from int) error {
			if x.DType == ir.String {
				y.Text[to] = x.Text[from]
			} else {
				y.Text[to] = strconv.FormatFloat(float64(ir.View[float32](x)[from]), 'g', -1, 32)
			}
			return nil
		}, nil
	case "TO_FLOAT", "TO_INT64":
		dt := map[string]ir.DType{"TO_FLOAT": ir.Float, "TO_INT64": ir.Int64}[cast]
		return dt, func(y *ir.Array, to int, x *ir.Array, from int) error {
			var v [1]float64
			if x.DType == ir.Float {
				number.Read(v[:], x, from)
			} else {
				f, err := strconv.ParseFloat(x.Text[from], 64)
				if err != nil {
					return fmt.Errorf("value %q is not a number", x.Text[from])
				}
				v[0] = f
			}
			number.Write(y, to, v[:])
			return nil
		}, nil
	default:
		return 0, nil, fmt.Errorf("cast_to is %q, want TO_FLOAT, TO_STRING or TO_INT64", cast)
	}
}

// features are the inputs of FeatureVectorizer and their numbers of columns.
func features(n *op.Node, in []*ir.Array) (rows int, sizes []int64, err error) {
	sizes = n.Ints("inputdimensions")
	if len(in) == 0 || len(sizes) != len(in) {
		return 0, nil, fmt.Errorf("%d inputdimensions for %d inputs", len(sizes), len(in))
	}
	for i := range in {
		if sizes[i] < 0 || sizes[i] > 1<<31 {
			return 0, nil, fmt.Errorf("inputdimensions %v are out of range", sizes)
		}
		_, r, _, err := table(in[i : i+1])
		if err != nil {
			return 0, nil, fmt.Errorf("input %d: %w", i, err)
		}
		if i > 0 && r != rows {
			return 0, nil, fmt.Errorf("input %d has %d rows, the first has %d", i, r, rows)
		}
		rows = r
	}
	return rows, sizes, nil
}

func featuresShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	rows, sizes, err := features(n, in)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for _, s := range sizes {
		total += s
	}
	return op.One(ir.Float, int64(rows), total)
}

// runFeatures truncates wide inputs and pads narrow ones with zeros.
func runFeatures(c *op.Call) error {
	rows, sizes, err := features(c.Node, c.In)
	if err != nil {
		return err
	}
	if clear(c.Out[0].Data); rows == 0 {
		return nil
	}
	all, before := int(c.Out[0].Shape[1]), 0
	for k, a := range c.In {
		row := make([]float64, min(width(a), int(sizes[k])))
		for i := range rows {
			number.Read(row, a, i*width(a))
			number.Write(c.Out[0], i*all+before, row)
		}
		before += int(sizes[k])
	}
	return nil
}

func extractShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	y, err := op.Tensor(in, 1, "Y")
	if err != nil {
		return nil, err
	}
	if y.DType != ir.Int64 || len(x.Shape) == 0 || y.Elems() == 0 {
		return nil, errors.New("X must not be a scalar, and Y must be int64 and not empty")
	}
	if x.DType != ir.String && x.DType.Bits()%8 != 0 {
		return nil, fmt.Errorf("X is %s, packed types are not supported", x)
	}
	if len(x.Shape) == 1 {
		return op.One(x.DType, 1, y.Elems()) // as in ONNX Runtime and ONNX's reference implementation
	}
	return op.One(x.DType, append(slices.Clone(x.Shape[:len(x.Shape)-1]), y.Elems())...)
}

func runExtract(c *op.Call) error {
	x, z, size := c.In[0], c.Out[0], int(c.In[0].DType.Bits()/8)
	features, places := width(x), ir.View[int64](c.In[1])
	for _, p := range places {
		if p < 0 || p >= int64(features) {
			return fmt.Errorf("index %d is out of range for %d features", p, features)
		}
	}
	for i := range int(z.Elems()) {
		from := i/len(places)*features + int(places[i%len(places)])
		if x.DType == ir.String {
			z.Text[i] = x.Text[from]
		} else {
			copy(z.Data[i*size:(i+1)*size], x.Data[from*size:])
		}
	}
	return nil
}
