package opset

import "github.com/mcompress/mcompress/ir"

// The rules here turn attributes into inputs.

// intsInput makes the list attribute of that name the input i; none stays none.
// An empty list meant none before, and means none as an absent input.
func (d *draft) intsInput(name string, i int) error {
	a, err := d.takeAttr(name)
	if a == nil || err != nil || len(a.Ints) == 0 {
		return err
	}
	d.setInput(i, ints(a.Ints))
	return nil
}

func axesInput(d *draft) error    { return d.intsInput("axes", 1) }
func reshapeInput(d *draft) error { return d.shapeInput() }
func splitInput(d *draft) error   { return d.intsInput("split", 1) }

// shapeInput keeps an empty list: it is the shape of a scalar.
func (d *draft) shapeInput() error {
	a, err := d.takeAttr("shape")
	if err != nil {
		return err
	}
	if a == nil {
		return reason("has no attribute shape")
	}
	d.setInput(1, ints(a.Ints))
	return nil
}

// splitCount is the number of parts, where their sizes are not given.
func splitCount(d *draft) error {
	if d.input(1).absent() {
		d.set(ir.IntAttr("num_outputs", int64(len(d.node.Outputs))))
	}
	return nil
}

func sliceInputs(d *draft) error {
	for i, name := range []string{"starts", "ends", "axes"} {
		if err := d.intsInput(name, i+1); err != nil {
			return err
		}
	}
	if d.input(1).absent() || d.input(2).absent() {
		return reason("has no starts or no ends")
	}
	return nil
}

func topKInput(d *draft) error {
	a, err := d.takeAttr("k")
	if err != nil {
		return err
	}
	if a == nil {
		return reason("has no attribute k")
	}
	d.setInput(1, ints([]int64{a.I}))
	return nil
}

// clipInputs leaves a missing limit missing: its default is the type's own in both.
func clipInputs(d *draft) error {
	for i, name := range []string{"min", "max"} {
		if err := d.scalarInput(name, i+1); err != nil {
			return err
		}
	}
	return nil
}

// scalarInput makes the float attribute of that name a scalar of the data's type.
func (d *draft) scalarInput(name string, i int) error {
	a, err := d.takeAttr(name)
	if a == nil || err != nil {
		return err
	}
	c, err := d.like(a.F, d.input(0))
	if err != nil {
		return err
	}
	d.setInput(i, c)
	return nil
}

// padInputs needs the data's type only where the padding is not zero.
func padInputs(d *draft) error {
	if err := d.intsInput("pads", 1); err != nil {
		return err
	}
	if d.input(1).absent() {
		d.setInput(1, ints(nil)) // a scalar has no axis to pad
	}
	a, err := d.attr("value")
	if err != nil {
		return err
	}
	if a != nil && a.F == 0 {
		d.drop("value")
		return nil
	}
	return d.scalarInput("value", 2)
}

// dropoutRatio keeps the ratio for those who train on; as a float, which serves
// data of any type.
func dropoutRatio(d *draft) error {
	a, err := d.takeAttr("ratio")
	if a != nil {
		d.setInput(1, operand{tensor: floatTensor(nil, []float32{a.F})})
	}
	return err
}

// dftAxis is written out also where it was the default, as that is another one now.
func dftAxis(d *draft) error {
	axis, err := d.integer("axis", 1)
	if err != nil {
		return err
	}
	d.drop("axis")
	d.setInput(2, scalarInt(axis))
	return nil
}
