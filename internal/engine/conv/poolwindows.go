package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
)

// Windows are the windows of a pool, for pools of types that this package does not support.
type Windows struct{ w *window }

// WindowsOf reads a pool's attributes for an input of these spatial lengths.
func WindowsOf(n *op.Node, lengths []int64) (Windows, error) {
	w, err := poolWindow(n, lengths)
	return Windows{w}, err
}

// In is the number of elements of an input channel.
func (v Windows) In() int { return v.w.inLen() }

// Out is the number of windows.
func (v Windows) Out() int { return v.w.outLen() }

// Lengths are the spatial lengths of the output.
func (v Windows) Lengths() []int64 {
	out := make([]int64, len(v.w.out))
	for i, d := range v.w.out {
		out[i] = int64(d)
	}
	return out
}

// Elements appends to list the elements of a channel that window o covers, in order.
func (v Windows) Elements(list []int, o int) []int {
	last := v.w.last()
	lo, hi := v.w.inside(last, o%v.w.out[last])
	first := o%v.w.out[last]*v.w.stride[last] - v.w.begin[last]
	for _, r := range v.w.rows(nil, o/v.w.out[last]) {
		for k := lo; k < hi; k++ {
			list = append(list, r.off+first+k*v.w.dilation[last])
		}
	}
	return list
}

// Counted is the divisor of an average over window o; padding is count_include_pad.
func (v Windows) Counted(o int, padding bool) int {
	last := v.w.last()
	return v.w.counted(last, o%v.w.out[last], padding) * v.w.countedRows(o/v.w.out[last], padding)
}
