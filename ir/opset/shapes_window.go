package opset

import (
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// windowSizes are the sizes of a convolution's or a pooling's output, one for each size of in,
// of the positions of a window of these sizes; unknown where they do not follow.
func windowSizes(n *ir.Node, in, window []ir.Dim) []ir.Dim {
	out := unknown(len(in))
	strides, ok1 := perAxis(n, "strides", len(in), 1)
	dilations, ok2 := perAxis(n, "dilations", len(in), 1)
	pads, ok3 := perAxis(n, "pads", 2*len(in), 0)
	auto := n.Attr("auto_pad")
	if !ok1 || !ok2 || !ok3 || len(window) != len(in) || auto != nil && auto.Ref != "" {
		return out
	}
	for i, d := range in {
		if !d.Known() || !window[i].Known() || strides[i] < 1 || dilations[i] < 1 {
			continue
		}
		reach := (window[i].N-1)*dilations[i] + 1
		switch {
		case auto != nil && strings.HasPrefix(auto.S, "SAME"):
			out[i] = ir.Dim{N: (d.N + strides[i] - 1) / strides[i]}
		case auto != nil && auto.S == "VALID":
			out[i] = steps(d.N-reach, strides[i])
		// Sizes that are rounded up are not inferred: runtimes differ in windows that begin in the padding.
		case n.Int("ceil_mode", 0) == 0:
			out[i] = steps(d.N+pads[i]+pads[len(in)+i]-reach, strides[i])
		}
	}
	return out
}

// steps is the number of places of a window that can move by distance.
func steps(distance, stride int64) ir.Dim {
	if distance < 0 {
		return ir.Dim{N: -1}
	}
	return ir.Dim{N: distance/stride + 1}
}

// perAxis is an attribute with n numbers, or n times def where it is absent.
func perAxis(n *ir.Node, name string, count int, def int64) ([]int64, bool) {
	a := n.Attr(name)
	if a == nil || a.Ref == "" && len(a.Ints) == 0 {
		is := make([]int64, count)
		for i := range is {
			is[i] = def
		}
		return is, true
	}
	return a.Ints, a.Ref == "" && len(a.Ints) == count
}

// kernelShape is the window of a pooling over so many axes.
func kernelShape(n *ir.Node, axes int) []ir.Dim {
	k, ok := perAxis(n, "kernel_shape", axes, -1)
	if !ok {
		return nil
	}
	return dims(k)
}

func ones(n int) []ir.Dim {
	ds := make([]ir.Dim, n)
	for i := range ds {
		ds[i] = ir.Dim{N: 1}
	}
	return ds
}
