package layout

import (
	"fmt"
	"math"
	"slices"
)

// A Window has the attributes of a convolution that im2col depends on, in ONNX's terms. Lists are by spatial axis; Pads
// has all begins and then all ends.
type Window struct {
	Batch, Channels, Group                      int64
	KernelShape, Strides, Dilations, Pads, Size []int64 // Size is that of the output
	ElemBytes                                   int64
}

// An Unfolding is the cost of copying patches out of images (im2col).
type Unfolding struct {
	Bytes int64 // read and written; padding counts as if it were read
	Runs  int64 // contiguous pieces of the image
}

func (u Unfolding) plus(v Unfolding) Unfolding { return Unfolding{u.Bytes + v.Bytes, u.Runs + v.Runs} }

// unfold is the cost of w channels first and channels last.
//
// Both copy the same number of bytes: kernel × channels elements per output pixel. Channels first, elements along a row
// of the image are contiguous if the stride is 1. Channels last, all channels of a pixel are contiguous, and the pixels
// along the width of the kernel. A 1×1 kernel without padding needs no copy: channels last at any stride, which is the
// row stride of the matrix; channels first at stride 1.
func (w *Window) unfold() (channelsFirst, channelsLast Unfolding, err error) {
	if err := w.check(); err != nil {
		return Unfolding{}, Unfolding{}, err
	}
	kernel, size := product(w.KernelShape...), product(w.Size...)
	bytes := product(2, w.Batch, w.Channels, kernel, size, w.ElemBytes)
	if bytes < 0 {
		return Unfolding{}, Unfolding{},
			fmt.Errorf("the patches of %d channels, kernel %v and output %v are too large to count",
				w.Channels, w.KernelShape, w.Size)
	}
	if bytes == 0 {
		return Unfolding{}, Unfolding{}, nil
	}
	// Pieces of one element, which the cases below join.
	channelsFirst = Unfolding{bytes, w.Batch * w.Channels * kernel * size}
	channelsLast = Unfolding{bytes, w.Batch * size * kernel * w.Group}
	end := len(w.Size) - 1
	if w.Strides[end] == 1 {
		channelsFirst.Runs /= w.Size[end]
	}
	if w.Group == 1 && w.Dilations[end] == 1 {
		channelsLast.Runs /= w.KernelShape[end]
	}
	if kernel > 1 || slices.Max(w.Pads) > 0 {
		return channelsFirst, channelsLast, nil
	}
	if slices.Max(w.Strides) == 1 {
		channelsFirst = Unfolding{}
	}
	return channelsFirst, Unfolding{}, nil
}

func (w *Window) check() error {
	axes := len(w.Size)
	if axes == 0 || len(w.KernelShape) != axes || len(w.Strides) != axes || len(w.Dilations) != axes ||
		len(w.Pads) != 2*axes {
		return fmt.Errorf("kernel %v, strides %v, dilations %v, pads %v and output %v have different numbers of axes",
			w.KernelShape, w.Strides, w.Dilations, w.Pads, w.Size)
	}
	if slices.Min(w.KernelShape) < 1 || slices.Min(w.Strides) < 1 || slices.Min(w.Dilations) < 1 ||
		slices.Min(w.Size) < 0 {
		return fmt.Errorf("kernel %v, strides %v, dilations %v, output %v: sizes must be positive", w.KernelShape,
			w.Strides, w.Dilations, w.Size)
	}
	if w.Batch < 0 || w.Channels < 0 || w.ElemBytes < 1 || w.Group < 1 || w.Group > max(1, w.Channels) {
		return fmt.Errorf("invalid batch %d, %d channels of %d bytes or %d groups", w.Batch, w.Channels, w.ElemBytes,
			w.Group)
	}
	return nil
}

// product is -1 on overflow.
func product(xs ...int64) int64 {
	if slices.Contains(xs, 0) {
		return 0
	}
	p := int64(1)
	for _, x := range xs {
		if x < 0 || p > math.MaxInt64/x {
			return -1
		}
		p *= x
	}
	return p
}
