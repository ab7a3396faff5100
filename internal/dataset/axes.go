package dataset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// Default sizes of open axes.
const (
	openAxis      = 16
	openImageSize = 64 // height and width; a multiple of 32 for repeated downsampling
)

// axes are the sizes of open axes of random inputs.
type axes struct {
	named map[string]int64
	batch int64
}

func newAxes(inputs []Input, r Random) *axes {
	x := &axes{named: maps.Clone(r.Dims), batch: r.Batch}
	if x.named == nil {
		x.named = map[string]int64{}
	}
	var sums []string
	for i := range maxRank {
		// First axes take precedence: the name of the batch axis of one input means the batch in all inputs.
		for _, in := range inputs {
			dims := in.dims(nil)
			if i >= len(dims) || dims[i].Known() || dims[i].Param == "" {
				continue
			}
			name := dims[i].Param
			if _, ok := x.named[name]; ok {
				continue
			}
			if parts := summands(name); parts != nil {
				sums = append(sums, name)
			} else {
				x.named[name] = x.defaultSize(i, len(dims), name)
			}
		}
	}
	for _, name := range sums {
		x.named[name] = x.sum(name)
	}
	return x
}

// maxRank bounds the axes whose names are read.
const maxRank = 16

// defaultSize is the default size of axis i of an input of the given rank.
func (x *axes) defaultSize(i, rank int, name string) int64 {
	switch {
	case i == 0 || strings.Contains(strings.ToLower(name), "batch"):
		return x.batch
	case rank >= 4 && i >= 2 && !strings.Contains(name, "past"):
		return openImageSize
	}
	return openAxis
}

// summands are the names whose sizes add up to that of name. Exporters of language models name the axes of a cache this way:
// "past_len + len", or total_len for past_len and len.
func summands(name string) []string {
	if parts := strings.Split(name, "+"); len(parts) > 1 {
		return parts
	}
	if rest, ok := strings.CutPrefix(name, "total_"); ok {
		return []string{"past_" + rest, rest}
	}
	return nil
}

// sum is the sum of the summands of name: sizes of other axes, or numbers.
func (x *axes) sum(name string) int64 {
	total := int64(0)
	for _, part := range summands(name) {
		part = strings.TrimSpace(part)
		n, ok := x.named[part]
		if _, err := fmt.Sscanf(part, "%d", &n); !ok && err != nil {
			return openAxis
		}
		total += n
	}
	return total
}

// checkDims reports sizes of axes that the inputs do not have, and invalid sizes.
func checkDims(inputs []Input, dims map[string]int64) error {
	open := map[string]bool{}
	for _, in := range inputs {
		for _, d := range in.dims(nil) {
			open[d.Param] = true
			for _, part := range summands(d.Param) {
				if part = strings.TrimSpace(part); strings.Trim(part, "0123456789") != "" {
					open[part] = true
				}
			}
		}
	}
	delete(open, "")
	for _, name := range slices.Sorted(maps.Keys(dims)) {
		switch {
		case dims[name] < 0:
			return fmt.Errorf("dim %s=%d: a size cannot be negative", name, dims[name])
		case open[name]:
		case len(open) == 0:
			return fmt.Errorf("dim %s: the inputs have no named axes", name)
		default:
			return fmt.Errorf("dim %s: the inputs have no axis of that name; named axes: %s", name, strings.Join(slices.Sorted(maps.Keys(open)), ", "))
		}
	}
	return nil
}

// spec is the type and shape of random values for in.
func (x *axes) spec(in Input) (ir.Spec, error) {
	s := ir.Spec{DType: in.elem()}
	switch {
	case in.Kind != onnx.TensorValue:
		return s, fmt.Errorf("input %q is not a tensor; random inputs are tensors only, use --data", in.Name)
	case !s.DType.Known():
		return s, fmt.Errorf("input %q: unknown element type; use --data", in.Name)
	case in.Type.Shape == nil:
		return s, fmt.Errorf("input %q: unknown rank; use --data", in.Name)
	}
	dims := in.dims(x.named)
	for i, d := range dims {
		n := d.N
		switch {
		case d.Known():
		case x.isState(dims, i):
			n = x.batch
		default:
			n = x.defaultSize(i, len(dims), d.Param)
		}
		s.Shape = append(s.Shape, n)
	}
	return s, nil
}

// isState reports whether axis i is the only open one, after a first axis larger than 1: the batch of a recurrent state, whose
// first axis is layers.
func (x *axes) isState(dims []ir.Dim, i int) bool {
	open := slices.IndexFunc(dims, func(d ir.Dim) bool { return !d.Known() })
	last := slices.IndexFunc(dims[open+1:], func(d ir.Dim) bool { return !d.Known() })
	return open == i && last < 0 && i > 0 && dims[0].N > 1
}
