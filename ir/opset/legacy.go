package opset

import (
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// The rules here take the operators of the first opsets to number 7, where ONNX
// Runtime's support begins.

// wholeP turns the norm's order from a float into an integer.
func wholeP(d *draft) error {
	a, err := d.takeAttr("p")
	if a == nil || err != nil {
		return err
	}
	p := int64(a.F)
	if float32(p) != a.F {
		return reason("p is not an integer")
	}
	d.set(ir.IntAttr("p", p))
	return nil
}

func noSplitInput(d *draft) error {
	if !d.input(1).absent() {
		return reason("its sizes are an input")
	}
	return nil
}

// explicitAxis writes down the axis that was the default.
func explicitAxis(d *draft) error {
	if d.index("axis") < 0 {
		d.set(ir.IntAttr("axis", 1))
	}
	return nil
}

// seluDefaults writes down the constants that were rounded at first.
func seluDefaults(d *draft) error {
	for _, was := range []*ir.Attr{ir.FloatAttr("alpha", 1.6732), ir.FloatAttr("gamma", 1.0507)} {
		if d.index(was.Name) < 0 {
			d.set(was)
		}
	}
	return nil
}

// castNumber turns the target type from a word into its number.
func castNumber(d *draft) error {
	a, err := d.attr("to")
	if err != nil {
		return err
	}
	if a == nil || dtypeNamed(a.S) == ir.Undefined {
		return reason("attribute to names no type")
	}
	d.set(ir.IntAttr("to", int64(dtypeNamed(a.S))))
	return nil
}

// dtypeNamed is the type of that name in TensorProto.DataType, Undefined if there is none.
func dtypeNamed(name string) ir.DType {
	for t := ir.Float; t.Known(); t++ {
		if strings.ToUpper(t.String()) == name {
			return t
		}
	}
	return ir.Undefined
}

// numpyBroadcast replaces the axis at which the second input used to be laid
// against the first: NumPy's rule lays their last axes together.
func numpyBroadcast(d *draft) error {
	at, err := d.takeAttr("axis")
	if err != nil {
		return err
	}
	on, err := d.integer("broadcast", 0)
	if err != nil {
		return err
	}
	d.drop("broadcast")
	if at == nil || on == 0 {
		return nil
	}
	a, ok := d.rank(d.input(0))
	b, ok2 := d.rank(d.input(1))
	if !ok || !ok2 {
		return reason("attribute axis needs inputs of known rank")
	}
	first, ok := axis(at.I, a)
	if !ok || first+b > a {
		return reason("attribute axis does not fit the inputs' ranks")
	}
	// The axes after those of the second input become 1, so that its axes are laid against the same ones by
	// counting from the last.
	d.setInput(1, d.unsqueeze(d.input(1), b, a-first-b))
	return nil
}

// slopeByChannel lays a slope for each channel against the second axis.
func slopeByChannel(d *draft) error {
	slope, ok := d.shape(d.input(1))
	if !ok {
		return reason("the slope's shape is not known")
	}
	if len(slope) != 1 || slope[0] == (ir.Dim{N: 1}) {
		return nil
	}
	x, ok := d.rank(d.input(0))
	if !ok {
		return reason("the input's rank is not known")
	}
	d.setInput(1, d.unsqueeze(d.input(1), 1, x-2))
	return nil
}

// unsqueeze adds count axes of size 1 after o's own.
func (d *draft) unsqueeze(o operand, rank, count int) operand {
	if count <= 0 {
		return o
	}
	axes := make([]int64, count)
	for i := range axes {
		axes[i] = int64(rank + i)
	}
	if d.p.to >= 13 {
		return d.new("Unsqueeze", []operand{o, ints(axes)})
	}
	return d.new("Unsqueeze", []operand{o}, ir.IntsAttr("axes", axes...))
}
