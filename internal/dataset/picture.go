package dataset

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// isSpatial reports whether axis i of in, with these axes, is height, width or depth of a picture.
func (in Input) isSpatial(dims []ir.Dim, i int) bool {
	if len(dims) < 4 || !in.isPicture(dims) {
		return false
	}
	if isChannels(dims[len(dims)-1]) && !dims[1].Known() {
		return i > 0 && i < len(dims)-1
	}
	return i >= 2
}

// isPicture reports whether in has the channels of a picture and otherwise dynamic axes, or an operator on pictures
// reads it.
func (in Input) isPicture(dims []ir.Dim) bool {
	if !in.elem().IsFloat() && in.elem() != ir.Uint8 {
		return false
	}
	open := func(dims []ir.Dim) bool { return !slices.ContainsFunc(dims, ir.Dim.Known) }
	last := len(dims) - 1
	return isChannels(dims[1]) && open(dims[2:]) || isChannels(dims[last]) && open(dims[1:last]) || in.value != nil &&
		isConvolved(in.value)
}

// isChannels reports whether d is a usual number of channels: gray, color, color with opacity.
func isChannels(d ir.Dim) bool { return d.Known() && slices.Contains([]int64{1, 3, 4}, d.N) }

// maxPictureVisits bounds the values between an input and the first operator on pictures.
const maxPictureVisits = 64

// isConvolved reports whether v, or elements of it that are moved or changed one by one, are the input of a
// convolution, pool or other operator on pictures.
func isConvolved(v *ir.Value) bool {
	seen, queue := map[*ir.Value]bool{v: true}, []*ir.Value{v}
	for len(queue) > 0 && len(seen) < maxPictureVisits {
		v, queue = queue[0], queue[1:]
		for _, u := range v.Uses() {
			if u.Node == nil {
				continue
			}
			facts := operator.Of(u.Node)
			if facts.Spatial && u.Index == 0 {
				return true
			}
			if facts.Elementwise == operator.NotElementwise && !facts.MovesInput(u.Index) {
				continue
			}
			for _, out := range u.Node.Outputs {
				if out != nil && !seen[out] {
					seen[out] = true
					queue = append(queue, out)
				}
			}
		}
	}
	return false
}
