package opset

import "github.com/mcompress/mcompress/ir"

// The rules here take Upsample to Resize and Resize to its present form.

// upsampleScales turns the two factors of images into one for each axis.
func upsampleScales(d *draft) error {
	h, err := d.takeAttr("height_scale")
	if err != nil {
		return err
	}
	w, err := d.takeAttr("width_scale")
	if err != nil {
		return err
	}
	if h == nil || w == nil {
		return reason("has no height_scale or no width_scale")
	}
	d.set(&ir.Attr{Name: "scales", Type: ir.AttrFloats, Floats: []float32{1, 1, h.F, w.F}})
	mode, err := d.text("mode", "nearest")
	if mode == "bilinear" {
		d.set(ir.StringAttr("mode", "linear"))
	}
	return err
}

func scalesInput(d *draft) error {
	a, err := d.takeAttr("scales")
	if err != nil {
		return err
	}
	if a == nil {
		return reason("has no attribute scales")
	}
	d.setInput(1, floats(a.Floats))
	return nil
}

// toResize renames; "bilinear" was allowed by runtimes for what is called "linear".
func toResize(d *draft) error {
	mode, err := d.text("mode", "nearest")
	if mode == "bilinear" {
		d.set(ir.StringAttr("mode", "linear"))
	}
	d.rename("Resize")
	return err
}

// resizeInputs spells out what opset 10 left open, as ONNX Runtime reads it:
// coordinates are divided by the scale; the nearest element is the one below when
// enlarging and the one above when shrinking.
func resizeInputs(d *draft) error {
	mode, err := d.text("mode", "nearest")
	if err != nil {
		return err
	}
	if mode == "nearest" {
		nearest, err := d.nearest()
		if err != nil {
			return err
		}
		d.set(ir.StringAttr("nearest_mode", nearest))
	}
	d.set(ir.StringAttr("coordinate_transformation_mode", "asymmetric"))
	scales := d.input(1)
	roi := operand{}
	if d.p.to < 13 {
		roi = floats(nil) // not optional yet
	}
	d.setInput(2, scales)
	d.setInput(1, roi)
	return nil
}

// nearest is the nearest_mode that fits the scales; Upsample only enlarges.
func (d *draft) nearest() (string, error) {
	if d.node.Op.Type == "Upsample" {
		return "floor", nil
	}
	scales, err := d.floatsOf(d.input(1))
	if err != nil {
		return "", err
	}
	if scales == nil {
		return "", reason("its scales are not constant, and enlarging rounds another way than shrinking")
	}
	larger, smaller := false, false
	for _, s := range scales {
		larger = larger || s > 1
		smaller = smaller || s < 1
	}
	switch {
	case larger && smaller:
		return "", reason("it enlarges one axis and shrinks another, which round differently")
	case smaller:
		return "ceil", nil
	}
	return "floor", nil
}

// oneOfScalesSizes drops the empty scales that were required next to sizes.
func oneOfScalesSizes(d *draft) error {
	if !d.input(3).absent() && !d.input(2).absent() {
		d.setInput(2, operand{})
	}
	return nil
}

// halfPixel replaces a coordinate_transformation_mode that opset 13 removed. It is
// half a pixel above half_pixel, so rounding down there is rounding half up here.
func halfPixel(d *draft) error {
	was, err := d.text("coordinate_transformation_mode", "")
	if err != nil || was != "tf_half_pixel_for_nn" {
		return err
	}
	mode, err := d.text("mode", "nearest")
	if err != nil {
		return err
	}
	nearest, err := d.text("nearest_mode", "round_prefer_floor")
	if err != nil {
		return err
	}
	if mode != "nearest" || nearest != "floor" {
		return reason("coordinate_transformation_mode " + was + " was removed, and is equal to no other one with these modes")
	}
	d.set(ir.StringAttr("coordinate_transformation_mode", "half_pixel"))
	d.set(ir.StringAttr("nearest_mode", "round_prefer_ceil"))
	return nil
}
