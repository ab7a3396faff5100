package conv

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func roiAlignRow(since int64, transform string) op.Op {
	types := byType{
		ir.Float:  func(c *op.Call) error { return alignRegions[float32](c, transform) },
		ir.Double: func(c *op.Call) error { return alignRegions[float64](c, transform) },
	}
	return op.Op{
		Type: "RoiAlign", Since: since, Run: types.run,
		Shape: func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
			a, err := roiAlignOf(n, transform)
			if err != nil {
				return nil, err
			}
			return a.shape(in, types)
		},
	}
}

// A roiAlign is the attributes of RoiAlign.
type roiAlign struct {
	max           bool
	half          bool // coordinates count from the centre of the first element, not from its edge
	height, width int
	samples       int // along each axis of a part; 0 for about one per element
	scale         float32
}

func roiAlignOf(n *op.Node, transform string) (*roiAlign, error) {
	transform = n.Text("coordinate_transformation_mode", transform)
	mode := n.Text("mode", "avg")
	switch {
	case transform != "half_pixel" && transform != "output_half_pixel":
		return nil, fmt.Errorf("coordinate_transformation_mode is %q, want half_pixel or output_half_pixel", transform)
	case mode != "avg" && mode != "max":
		return nil, fmt.Errorf("mode is %q, want avg or max", mode)
	}
	out, err := sizes("output_height, output_width", []int64{n.Int("output_height", 1), n.Int("output_width", 1)}, 2,
		1, 1)
	if err != nil {
		return nil, err
	}
	samples := n.Int("sampling_ratio", 0)
	if max(int64(out[0]), int64(out[1])) > mostSamples || samples < 0 || samples > mostSamples {
		return nil, fmt.Errorf("output of %d by %d with sampling_ratio %d: want 0 to %d", out[0], out[1], samples,
			mostSamples)
	}
	return &roiAlign{mode == "max", transform == "half_pixel", out[0], out[1], int(samples),
		n.Float("spatial_scale", 1)}, nil
}

func (a *roiAlign) shape(in []*ir.Array, types byType) ([]ir.Spec, error) {
	x, rois, err := roiInputs(types, in, 4)
	if err != nil {
		return nil, err
	}
	images, err := op.Arg(in, 2, "batch_indices")
	if err != nil {
		return nil, err
	}
	if images.DType != ir.Int64 || len(images.Shape) != 1 || images.Shape[0] != rois.Shape[0] {
		return nil, fmt.Errorf("input batch_indices is %s, want int64[%d]", images, rois.Shape[0])
	}
	return like(x, rois.Shape[0], x.Shape[1], int64(a.height), int64(a.width))
}

// alignRegions pools the samples of each part of each region.
func alignRegions[T float](c *op.Call, transform string) error {
	a, err := roiAlignOf(c.Node, transform)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	x, rois, y := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.Out[0])
	shape := c.In[0].Shape
	channels, h, w := int(shape[1]), int(shape[2]), int(shape[3])
	scale := T(a.scale)
	for i, image := range ir.View[int64](c.In[2]) {
		if image < 0 || image >= shape[0] {
			return fmt.Errorf("input batch_indices has %d at %d, out of range 0 to %d", image, i, shape[0]-1)
		}
		roi := part(rois, i, 4)
		rows, err := samplesOf(a, roi[1]*scale, roi[3]*scale, a.height, h)
		if err != nil {
			return fmt.Errorf("region %d of input rois: %w", i, err)
		}
		cols, err := samplesOf(a, roi[0]*scale, roi[2]*scale, a.width, w)
		if err != nil {
			return fmt.Errorf("region %d of input rois: %w", i, err)
		}
		c.Pool.For(channels, func(ch int) {
			plane := part(x, int(image)*channels+ch, h*w)
			to := part(y, i*channels+ch, a.height*a.width)
			for j := range to {
				to[j] = poolSamples(a, plane, w, rows[j/a.width], cols[j%a.width])
			}
		})
	}
	return nil
}

// An alignedSample is between two positions of an axis.
type alignedSample[T float] struct {
	low, high   int
	toLow, toUp T // weights; 0 for both outside the input
}

// mostSamples bounds the samples of one region along an axis.
const mostSamples = 1 << 20

// samplesOf are the samples of each of n parts of a region from start to end.
func samplesOf[T float](a *roiAlign, start, end T, n, length int) ([][]alignedSample[T], error) {
	if a.half {
		start, end = start-0.5, end-0.5
	}
	size := end - start
	if !a.half {
		size = max(size, 1) // an empty region gets size one
	}
	size /= T(n)
	wanted := float64(a.samples)
	if a.samples == 0 {
		wanted = max(math.Ceil(float64(size)), 0)
	}
	if !(wanted*float64(n) <= mostSamples) {
		return nil, fmt.Errorf("%v samples in each of %d parts, maximum is %d", wanted, n, mostSamples)
	}
	count := int(wanted)
	parts := make([][]alignedSample[T], n)
	for p := range parts {
		parts[p] = make([]alignedSample[T], count)
		for i := range parts[p] {
			parts[p][i] = align(start+T(p)*size+(T(i)+0.5)*size/T(count), length)
		}
	}
	return parts, nil
}

func align[T float](at T, length int) alignedSample[T] {
	if !(at >= -1 && at <= T(length)) {
		return alignedSample[T]{}
	}
	at = max(at, 0)
	low := int(at)
	if low >= length-1 {
		return alignedSample[T]{length - 1, length - 1, 1, 0}
	}
	up := at - T(low)
	return alignedSample[T]{low, low + 1, 1 - up, up}
}

// poolSamples is the average of the samples of one part, or the maximum of all products of their neighbours with their
// weights, which the reference implementation defines as the maximum.
func poolSamples[T float](a *roiAlign, plane []T, width int, rows, cols []alignedSample[T]) T {
	sum, top := T(0), T(0)
	for i, r := range rows {
		low, high := plane[r.low*width:][:width], plane[r.high*width:][:width]
		for j, c := range cols {
			v := [4]T{
				r.toLow * c.toLow * low[c.low], r.toLow * c.toUp * low[c.high],
				r.toUp * c.toLow * high[c.low], r.toUp * c.toUp * high[c.high],
			}
			sum += v[0] + v[1] + v[2] + v[3]
			largest := max(v[0], v[1], v[2], v[3])
			if i == 0 && j == 0 {
				top = largest
			}
			top = max(top, largest)
		}
	}
	if a.max {
		return top
	}
	return sum / T(max(len(rows)*len(cols), 1))
}
