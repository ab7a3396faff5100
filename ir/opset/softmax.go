package opset

import "github.com/mcompress/mcompress/ir"

// uncoerce keeps the meaning that Softmax, LogSoftmax and Hardmax had before opset 13: they
// took all axes from `axis` on for one.
func uncoerce(d *draft) error {
	from, err := d.integer("axis", 1)
	if err != nil || from == -1 {
		return err
	}
	shape, _ := d.shape(d.input(0))
	if only, ok := onlyAxis(shape, from); ok {
		d.setAxis(only, len(shape))
		return nil
	}
	d.drop("axis")
	return d.flatten(from)
}

// setAxis writes an axis down, unless it is set already or is the last one, which is
// the default now.
func (d *draft) setAxis(at, rank int) {
	i := d.index("axis")
	if i < 0 && at == rank-1 || i >= 0 && d.attrs[i].I == int64(at) {
		return
	}
	d.set(ir.IntAttr("axis", int64(at)))
}

// onlyAxis is the one axis from `from` on whose size is not 1, if there is no
// other; it does not exist where the rank is not known.
func onlyAxis(shape []ir.Dim, from int64) (int, bool) {
	first, ok := axis(from, len(shape))
	if !ok {
		return 0, false
	}
	only := len(shape) - 1
	wide := 0
	for i := first; i < len(shape); i++ {
		if shape[i] != (ir.Dim{N: 1}) {
			only = i
			wide++
		}
	}
	return only, wide <= 1
}

// flatten runs d on its first input as a matrix, rows up to axis, and gives its
// first output the input's shape again.
func (d *draft) flatten(axis int64) error {
	if len(d.node.Outputs) == 0 {
		return reason("has no output")
	}
	x := d.input(0)
	d.setInput(0, d.new("Flatten", []operand{x}, ir.IntAttr("axis", axis)))
	shape := d.new("Shape", []operand{x})
	d.tail = &draft{p: d.p, op: "Reshape", in: []operand{{node: d}, shape}}
	if d.p.to >= 14 {
		// A size of zero is itself, and not the matrix's size at that place.
		d.tail.attrs = []*ir.Attr{ir.IntAttr("allowzero", 1)}
	}
	return nil
}
