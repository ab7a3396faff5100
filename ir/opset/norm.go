package opset

import "github.com/mcompress/mcompress/ir"

// inferenceOnly refuses what ran in training mode, the default up to opset 6.
func inferenceOnly(d *draft) error {
	test, err := d.integer("is_test", 0)
	if err != nil {
		return err
	}
	if test == 0 {
		return reason("it runs in training mode")
	}
	d.drop("is_test")
	return nil
}

// spatialOnly turns statistics for each element into ones for each channel of the
// flattened input.
func spatialOnly(d *draft) error {
	spatial, err := d.integer("spatial", 1)
	if err != nil {
		return err
	}
	d.drop("spatial")
	if spatial != 0 {
		return nil
	}
	if rank, ok := d.rank(d.input(0)); ok && rank == 2 {
		return nil
	}
	for i := 1; i < len(d.in); i++ {
		d.setInput(i, d.new("Reshape", []operand{d.input(i), ints([]int64{-1})}))
	}
	d.flatten(1)
	return nil
}

// oneOutput drops the outputs of training, which are others now.
func oneOutput(d *draft) error {
	return d.keepOne("its outputs for training are in use")
}

// noMask drops a mask. It had the data's type up to opset 9, and only opset 12 says
// what it holds where nothing is dropped; before, ONNX Runtime gives the opposite.
func noMask(d *draft) error {
	return d.keepOne("its mask is in use, which meant something else")
}

// keepOne drops all outputs but the first, if nothing reads them.
func (d *draft) keepOne(why string) error {
	for i, v := range d.node.Outputs {
		if i > 0 && v != nil && len(v.Uses()) > 0 {
			return reason(why)
		}
	}
	if d.outputs > 1 {
		d.outputs, d.changed = 1, true
	}
	return nil
}

// perChannel repeats each group's scale and bias for the group's channels.
func perChannel(d *draft) error {
	shape, ok := d.shape(d.input(0))
	if !ok || len(shape) < 2 || !shape[1].Known() {
		return reason("the number of channels is not known")
	}
	groups, err := d.integer("num_groups", 0)
	if err != nil {
		return err
	}
	channels := shape[1].N
	if groups < 1 || channels%groups != 0 {
		return reason("its channels do not fall into groups of one size")
	}
	if channels != groups {
		for _, i := range []int{1, 2} {
			column := d.new("Reshape", []operand{d.input(i), ints([]int64{groups, 1})})
			wide := d.new("Expand", []operand{column, ints([]int64{groups, channels / groups})})
			d.setInput(i, d.new("Reshape", []operand{wide, ints([]int64{-1})}))
		}
	}
	if t := d.elem(d.input(0)); t == ir.Double {
		d.set(ir.IntAttr("stash_type", int64(t))) // the default would round to float
	}
	return nil
}
