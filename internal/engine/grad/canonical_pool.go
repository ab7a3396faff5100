package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// reluAfterPool moves Relu after MaxPool: the result is equal, from fewer elements, and no value of the size of the
// pool's input is stored. Indices among equal zeros may differ, but their gradient is zero.
func reluAfterPool(t *Tape, n *ir.Node) bool {
	relu := n.Input(0).Producer()
	if !is(relu, "", "Relu") || len(n.Input(0).Uses()) != 1 || slices.ContainsFunc(n.Outputs[1:], isConsumed) ||
		!meetsInput(n) {
		return false
	}
	b := inserter{t.Builder, n}
	pooled := b.op("MaxPool", []*ir.Value{relu.Input(0)}, n.Attrs...)
	replaceOutput(n, 0, b.op("Relu", []*ir.Value{pooled}))
	return true
}

// meetsInput reports whether no window of a pool is entirely in the padding, where its maximum is below zero.
func meetsInput(n *ir.Node) bool {
	if n.Int("ceil_mode", 0) != 0 || n.Attr("auto_pad") != nil && n.Attr("auto_pad").S != "NOTSET" {
		return false
	}
	kernel := ints(n, "kernel_shape")
	for i, p := range ints(n, "pads") {
		if len(kernel) == 0 || p >= kernel[i%len(kernel)] {
			return false
		}
	}
	return !slices.ContainsFunc(ints(n, "dilations"), func(d int64) bool { return d != 1 })
}

// ints returns an optional attribute.
func ints(n *ir.Node, name string) []int64 {
	if a := n.Attr(name); a != nil {
		return a.Ints
	}
	return nil
}
