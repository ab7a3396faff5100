package opset

import "github.com/mcompress/mcompress/ir"

// The rules here keep a meaning whose default or spelling changed.

// roiUnshifted names what opset 10 did, which is not the new default.
func roiUnshifted(d *draft) error {
	d.set(ir.StringAttr("coordinate_transformation_mode", "output_half_pixel"))
	return nil
}

func gridModes(d *draft) error {
	mode, err := d.text("mode", "bilinear")
	if err != nil {
		return err
	}
	switch mode {
	case "bilinear":
		d.drop("mode")
	case "bicubic":
		d.set(ir.StringAttr("mode", "cubic"))
	}
	return nil
}

// floatOnly refuses elements that the operator no longer takes. An unknown type
// passes: ONNX Runtime never had a kernel for the others.
func floatOnly(d *draft) error {
	t := d.elem(d.input(0))
	if t != ir.Undefined && !t.IsFloat() {
		return reason("it no longer takes elements of type " + t.String())
	}
	return nil
}

// windowsInside refuses a pooling that could lose a window: from opset 22 on those
// that would start in the padding at the end are left out. They arise only from
// rounding sizes up, and only where a stride is longer than what the window has
// outside that padding.
func windowsInside(d *draft) error {
	up, err := d.integer("ceil_mode", 0)
	if up == 0 || err != nil {
		return err
	}
	w := map[string][]int64{}
	for _, name := range []string{"kernel_shape", "strides", "pads", "dilations"} {
		a, err := d.attr(name)
		if err != nil {
			return err
		}
		if a != nil {
			w[name] = a.Ints
		}
	}
	for i := range w["kernel_shape"] {
		if mayStartOutside(w, i) {
			return reason("ceil_mode lets a window start in the padding, where it is left out now")
		}
	}
	return nil
}

// mayStartOutside checks one axis of a pooling's lists, by their names.
func mayStartOutside(w map[string][]int64, axis int) bool {
	get := func(name string, i int, def int64) int64 {
		if list := w[name]; i < len(list) {
			return list[i]
		}
		return def
	}
	kernel := w["kernel_shape"]
	// The extent of the dilated kernel.
	size := (kernel[axis]-1)*get("dilations", axis, 1) + 1
	return get("strides", axis, 1) > size-get("pads", len(kernel)+axis, 0)
}
