package opset

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

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
	// Parameters of the shape of an element (C × H × W) become one for each column of the flattened input.
	for i := 1; i < len(d.in); i++ {
		d.setInput(i, d.new("Reshape", []operand{d.input(i), ints([]int64{-1})}))
	}
	return d.flatten(1)
}

// oneOutput refuses training, which up to opset 13 was requested by further outputs,
// whether something read them or not.
func oneOutput(d *draft) error {
	if slices.ContainsFunc(d.node.Outputs[min(1, d.outputs):], func(v *ir.Value) bool { return v != nil }) {
		return reason("it runs in training mode")
	}
	d.keep(1)
	return nil
}

// noMask drops a mask that nothing reads. It had the data's type up to opset 9, and
// only opset 12 specifies it where nothing is dropped; before, ONNX Runtime
// gives the opposite.
func noMask(d *draft) error {
	if len(d.node.Outputs) > 1 && d.node.Outputs[1] != nil && len(d.node.Outputs[1].Uses()) > 0 {
		return reason("its mask is in use, which meant something else")
	}
	d.keep(1)
	return nil
}

// keep drops all outputs but the first n.
func (d *draft) keep(n int) {
	if d.outputs > n {
		d.outputs, d.changed = n, true
	}
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
		return reason("its channels are not divisible into groups of one size")
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
