package conv

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// regions are the pools over regions of interest. RoiAlign 16 changed the default coordinates by half an element.
func regions() []op.Op {
	return wide(
		op.Op{Type: "MaxRoiPool", Since: 1, Shape: maxRoiShape, Run: maxRoiTypes().run},
		roiAlignRow(10, "output_half_pixel"),
		roiAlignRow(16, "half_pixel"),
	)
}

func maxRoiTypes() byType {
	return byType{ir.Float: maxRoi[float32], ir.Double: maxRoi[float64]}
}

func maxRoiShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, rois, err := roiInputs(maxRoiTypes(), in, 5)
	if err != nil {
		return nil, err
	}
	pooled, err := sizes("pooled_shape", n.Ints("pooled_shape"), 2, 0, 1)
	if err != nil {
		return nil, err
	}
	return like(x, rois.Shape[0], x.Shape[1], int64(pooled[0]), int64(pooled[1]))
}

// roiInputs are an X of two spatial axes and rois of that many columns.
func roiInputs(t byType, in []*ir.Array, columns int64) (x, rois *ir.Array, err error) {
	if x, err = t.image(in); err != nil {
		return nil, nil, err
	}
	if rois, err = op.Arg(in, 1, "rois"); err != nil {
		return nil, nil, err
	}
	if len(x.Shape) != 4 {
		return nil, nil, fmt.Errorf("input X is %s, want (N, C, H, W)", x)
	}
	if len(rois.Shape) != 2 || rois.Shape[1] != columns {
		return nil, nil, fmt.Errorf("input rois is %s, want (number, %d)", rois, columns)
	}
	if x.Shape[2]*x.Shape[3] == 0 && rois.Shape[0] > 0 {
		return nil, nil, fmt.Errorf("input X is %s, want no empty axes", x)
	}
	return x, rois, sameType(in, "X", "rois")
}

// maxRoi computes the maximum of each part of a region whose corners are rounded to integers, both included (Girshick,
// "Fast R-CNN", 2015).
func maxRoi[T float](c *op.Call) error {
	x, rois, y := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.Out[0])
	shape, out := c.In[0].Shape, c.Out[0].Shape
	for i := range int(out[0]) {
		if image := rois[i*5]; !(image >= 0 && image < T(shape[0])) {
			return fmt.Errorf("input rois has image %v at %d, out of range 0 to %d", image, i, shape[0]-1)
		}
	}
	scale := float64(c.Float("spatial_scale", 1))
	channels, h, w := int(shape[1]), int(shape[2]), int(shape[3])
	size := int(out[2] * out[3])
	c.Pool.For(int(out[0])*channels, func(i int) {
		roi := part(rois, i/channels, 5)
		rows := cutRegion(float64(roi[2])*scale, float64(roi[4])*scale, int(out[2]), h)
		cols := cutRegion(float64(roi[1])*scale, float64(roi[3])*scale, int(out[3]), w)
		plane := part(x, int(roi[0])*channels+i%channels, h*w)
		to := part(y, i, size)
		for j := range to {
			to[j] = maxOf(plane, w, rows[j/len(cols)], cols[j%len(cols)])
		}
	})
	return nil
}

// cutRegion divides the positions from start to end into n parts, which may overlap by one, clamped to the input.
func cutRegion(start, end float64, n, length int) [][2]int {
	first, last := nearWhole(start), nearWhole(end)
	size := max(last-first+1, 1) / float64(n)
	inside := func(p float64) int { return int(min(max(p+first, 0), float64(length))) }
	parts := make([][2]int, n)
	for i := range parts {
		parts[i] = [2]int{inside(math.Floor(float64(i) * size)), inside(math.Ceil(float64(i+1) * size))}
	}
	return parts
}

// nearWhole rounds; NaN becomes the lowest coordinate.
func nearWhole(p float64) float64 {
	if !(math.Abs(p) < most) {
		return -most
	}
	return math.Round(p)
}

// maxOf is the maximum of a rectangle, 0 for an empty one.
func maxOf[T float](plane []T, width int, rows, cols [2]int) T {
	if rows[0] >= rows[1] || cols[0] >= cols[1] {
		return 0
	}
	top := leastOf[T]()
	for r := rows[0]; r < rows[1]; r++ {
		for _, v := range plane[r*width+cols[0] : r*width+cols[1]] {
			top = max(top, v)
		}
	}
	return top
}
