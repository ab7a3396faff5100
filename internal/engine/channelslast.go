package engine

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// storeChannelsLast stores images with channels last if all steps that write and read them support it, so that chains
// of 1×1 and depthwise convolutions neither transpose images nor pack them. Shapes of values stay those of channels
// first, and results are bit-identical. Values that a caller may see are not stored so, and neither are those of a
// session that shares values with another one.
func (l *loader) storeChannelsLast(p *program) error {
	// Sessions exchange values in the layout of ONNX.
	if l.planOnly || l.shared != nil || l.baseline != nil {
		return nil
	}
	// All images that a step may write with channels last, from which those are removed that another step cannot read.
	supported, last := make([]op.Layouts, len(p.steps)), make([]bool, len(p.slots))
	for i, s := range p.steps {
		if supported[i] = p.layouts(s); supported[i] != op.ChannelsFirst {
			last[s.out[0]] = !p.slots[s.out[0]].keep
		}
	}
	for _, o := range p.outputs {
		if o != absent {
			last[o] = false
		}
	}
	for i, s := range p.steps {
		for k, o := range s.in {
			// An operator reads an image as its first input, or element by element with its result, as inputs of InPlace are.
			reads := supported[i] >= op.EqualLayouts && k == 0 || supported[i] != op.ChannelsFirst &&
				slices.Contains(s.op.InPlace, k)
			if o != absent && !reads {
				last[o] = false
			}
		}
	}
	// Each pass only removes images, so it ends; the result does not depend on the order of steps.
	for agree(p, supported, last) {
	}
	for i, s := range p.steps {
		if supported[i] != op.ChannelsFirst {
			s.LastIn, s.LastOut = last[s.in[0]], last[s.out[0]]
		}
	}
	return nil
}

// layouts are those that s supports.
func (p *program) layouts(s *step) op.Layouts {
	if s.op.ChannelsLast == nil || !s.complete() || s.in[0] == absent {
		return op.ChannelsFirst
	}
	types := make([]*ir.Array, len(s.in))
	for k, o := range s.in {
		if o != absent && p.slots[o].constant != nil {
			types[k] = p.slots[o].constant.array
		}
	}
	return s.op.ChannelsLast(s.Node, types)
}

// agree excludes images from channels last that need another one to be stored so, which is not. It reports whether
// there were any; a pass in each direction follows chains to their ends.
func agree(p *program, supported []op.Layouts, last []bool) (changed bool) {
	visit := func(i int) {
		s := p.steps[i]
		if supported[i] == op.ChannelsFirst {
			return
		}
		equal := []int{s.out[0]}
		for k, o := range s.in {
			if o != absent && (k == 0 && supported[i] == op.EqualLayouts || slices.Contains(s.op.InPlace, k)) {
				equal = append(equal, o)
			}
		}
		// Pools of channels first are faster without a transposition.
		if supported[i] == op.LastInput && last[s.out[0]] && !last[s.in[0]] {
			last[s.out[0]], changed = false, true
		}
		isLast := func(o int) bool { return last[o] }
		isFirst := func(o int) bool { return !last[o] }
		if slices.ContainsFunc(equal, isLast) && slices.ContainsFunc(equal, isFirst) {
			for _, o := range equal {
				last[o] = false
			}
			changed = true
		}
	}
	for i := range p.steps {
		visit(i)
	}
	for i := range slices.Backward(p.steps) {
		visit(i)
	}
	return changed
}
