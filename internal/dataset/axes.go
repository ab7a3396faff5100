package dataset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// Default sizes of open axes.
const (
	openAxis      = 16
	openImageSize = 64 // height and width; a multiple of 32 for repeated downsampling
)

// axes are the sizes of open axes of inputs. Open axes of one name are one axis; an axis without a name is called
// INPUT:INDEX.
type axes struct {
	inputs []Input
	given  map[string]int64 // from options, or from data
	names  []string         // of the axes, in the order of their precedence
	sizes  map[string]int64
	batch  map[string]bool // the axes that are batches
	size   int64           // of a batch
}

// newAxes chooses the sizes of the open axes of inputs: the given ones, defaults, or those that the graph requires.
func newAxes(inputs []Input, given map[string]int64, batch int64) *axes {
	x := &axes{inputs: inputs, given: given, sizes: map[string]int64{}, batch: map[string]bool{}, size: max(batch, 1)}
	for i := range maxRank {
		// First axes take precedence: the name of the batch axis of one input means the batch in all inputs.
		for _, in := range inputs {
			if dims := in.dims(nil); i < len(dims) && !dims[i].Known() {
				x.addAxis(in, dims, i)
			}
		}
	}
	x.solve(batch > 1)
	return x
}

// maxRank bounds the axes whose names are read.
const maxRank = 16

// axisName is the name of axis i of in.
func (in Input) axisName(dims []ir.Dim, i int) string {
	return firstNonEmpty(dims[i].Param, in.Name+":"+strconv.Itoa(i))
}

// Axis is the name of axis i of in, by which options give its size: INPUT:INDEX if it has none.
func (in Input) Axis(i int) string { return in.axisName(in.Type.Shape, i) }

// addAxis adds axis i of in with its default size.
func (x *axes) addAxis(in Input, dims []ir.Dim, i int) {
	name := in.axisName(dims, i)
	if _, known := x.sizes[name]; known {
		return
	}
	x.names = append(x.names, name)
	if n, ok := x.given[name]; ok {
		x.sizes[name] = n
		return
	}
	if x.isBatch(dims, i) {
		// Batches are varied last, and messages do not list them among the chosen sizes.
		x.batch[name] = true
		x.sizes[name] = x.size
		return
	}
	x.sizes[name] = openAxis
	if in.isSpatial(dims, i) {
		x.sizes[name] = openImageSize
	}
}

// isBatch reports whether axis i is a batch: the first axis, one that is called so, or the only open one after a first
// axis larger than 1, as in a recurrent state, whose first axis is layers.
func (x *axes) isBatch(dims []ir.Dim, i int) bool {
	if i == 0 || strings.Contains(strings.ToLower(dims[i].Param), "batch") {
		return true
	}
	isOpen := func(d ir.Dim) bool { return !d.Known() }
	return dims[i].Param == "" && slices.IndexFunc(dims, isOpen) == i &&
		!slices.ContainsFunc(dims[i+1:], isOpen) && dims[0].N > 1
}

// summands are the names whose sizes add up to that of name. Exporters of language models name the axes of a cache this
// way: "past_len + len", or total_len for past_len and len.
func summands(name string) []string {
	if parts := strings.Split(name, "+"); len(parts) > 1 {
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return parts
	}
	if rest, ok := strings.CutPrefix(name, "total_"); ok {
		return []string{"past_" + rest, rest}
	}
	return nil
}

// isSum reports whether the size of an axis follows from those of others.
func (x *axes) isSum(name string) bool {
	_, given := x.given[name]
	return !given && summands(name) != nil
}

// sum is the sum of the summands of name, which are other axes or numbers.
func (x *axes) sum(name string, sizes map[string]int64) int64 {
	total := int64(0)
	for _, part := range summands(name) {
		n, ok := sizes[part]
		if !ok {
			n, ok = x.given[part]
		}
		if !ok {
			var err error
			if n, err = strconv.ParseInt(part, 10, 64); err != nil {
				// The name only looks like a sum, or a summand is no axis of an input.
				return openAxis
			}
		}
		total += n
	}
	return total
}

// solve changes default sizes with which the graph cannot run. A batch size that is requested is kept.
func (x *axes) solve(keepBatch bool) {
	var free []string
	for _, name := range x.names {
		if _, given := x.given[name]; !given && !x.isSum(name) {
			free = append(free, name)
		}
	}
	set := func(sizes []int64) {
		for i, name := range free {
			x.sizes[name] = sizes[i]
		}
		for _, name := range x.names {
			if x.isSum(name) {
				x.sizes[name] = x.sum(name, x.sizes)
			}
		}
	}
	start := make([]int64, len(free))
	for i, name := range free {
		start[i] = x.sizes[name]
	}
	set(start)
	if g := graphOf(x.inputs); g != nil && len(free) > 0 {
		system := opset.System{Graph: g, Vary: x.vary(free, keepBatch), Shapes: func(sizes []int64) map[*ir.Value][]int64 {
			set(sizes)
			return x.shapes()
		}}
		set(system.Solve(start))
	}
}

// graphOf is the graph that the inputs belong to, nil if they have none.
func graphOf(inputs []Input) *ir.Graph {
	for _, in := range inputs {
		if in.value != nil {
			return in.value.Graph()
		}
	}
	return nil
}

// shapes are the shapes of all inputs whose rank is known.
func (x *axes) shapes() map[*ir.Value][]int64 {
	shapes := map[*ir.Value][]int64{}
	for _, in := range x.inputs {
		if dims := in.dims(nil); dims != nil {
			shapes[in.value] = x.shape(in, dims)
		}
	}
	return shapes
}

func (x *axes) shape(in Input, dims []ir.Dim) []int64 {
	shape := make([]int64, len(dims))
	for i, d := range dims {
		if shape[i] = d.N; !d.Known() {
			shape[i] = x.sizes[in.axisName(dims, i)]
		}
	}
	return shape
}

// vary are the lists of free axes that are changed together: height and width of an image, then single axes, those of
// the last inputs and of batches last.
func (x *axes) vary(free []string, keepBatch bool) [][]int {
	var images, single, batches [][]int
	for _, in := range x.inputs {
		var sides []int
		for i, dims := 0, in.dims(nil); i < len(dims); i++ {
			if k := slices.Index(free, in.axisName(dims, i)); k >= 0 && !dims[i].Known() && in.isSpatial(dims, i) &&
				!slices.Contains(sides, k) {
				sides = append(sides, k)
			}
		}
		if len(sides) > 1 {
			images = append(images, sides)
		}
	}
	for i, name := range slices.Backward(free) {
		if x.batch[name] {
			batches = append(batches, []int{i})
		} else {
			single = append(single, []int{i})
		}
	}
	if keepBatch {
		batches = nil
	}
	return slices.Concat(images, single, batches)
}

// CheckDims reports sizes of axes that the inputs do not have, with the nearest names, and invalid sizes: mistakes of
// the caller.
func CheckDims(inputs []Input, dims map[string]int64) error {
	open := map[string]bool{}
	for _, in := range inputs {
		for i, d := range in.dims(nil) {
			if d.Known() {
				continue
			}
			open[in.axisName(in.Type.Shape, i)] = true
			for _, part := range summands(d.Param) {
				if strings.Trim(part, "0123456789") != "" {
					open[part] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dims)) {
		switch {
		case dims[name] < 0:
			return pass.OptionErrorf("dim %s=%d: a size cannot be negative", name, dims[name])
		case open[name]:
		case len(open) == 0:
			return pass.OptionErrorf("dim %s: the inputs have no dynamic axes", name)
		default:
			near := pass.Nearest(name, slices.Sorted(maps.Keys(open)))
			return pass.OptionErrorf("dim %s: the inputs have no axis of that name; the nearest of their dynamic axes: %s", name,
				strings.Join(near[:min(maxNear, len(near))], ", "))
		}
	}
	return nil
}

// maxNear is the maximum number of names that an error lists.
const maxNear = 8

// specs are the types and shapes of random values for all inputs.
func (x *axes) specs() ([]ir.Spec, error) {
	specs := make([]ir.Spec, len(x.inputs))
	var err error
	for i, in := range x.inputs {
		if specs[i], err = x.spec(in); err != nil {
			return nil, err
		}
	}
	return specs, nil
}

// spec is the type and shape of random values for in.
func (x *axes) spec(in Input) (ir.Spec, error) {
	s := ir.Spec{Name: in.Name, DType: in.elem()}
	switch {
	case in.Kind != onnx.TensorValue:
		return s, fmt.Errorf("input %q is not a tensor; random inputs are tensors only, use --data", in.Name)
	case !s.DType.Known():
		return s, fmt.Errorf("input %q: unknown element type; use --data", in.Name)
	case in.Type.Shape == nil:
		return s, fmt.Errorf("input %q: unknown rank; use --data", in.Name)
	}
	s.Shape = x.shape(in, in.dims(nil))
	return s, nil
}
