package report

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// LoadedBytes is the bytes of the constants of m, of which there is no ledger, once the runtime of Totals.Runtime has
// loaded it: sparse forms and most quantized ones are expanded.
func LoadedBytes(ctx context.Context, m *ir.Model) (int64, error) {
	_, held, err := sizes(ctx, Model{IR: m})
	if err != nil {
		return 0, err
	}
	all, decoded := newConstants(m), newParameterCounter(m).decoded
	expanded, counted := map[*ir.Tensor]bool{}, map[buffer]bool{}
	for n := range m.Nodes() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		d := decoded[n]
		if !d.decodes || d.elems < 0 || !all.folds(n) || !all.isRead(n.Outputs[0]) {
			continue
		}
		parts := all.expandedParts(n.Outputs[0])
		for _, v := range parts {
			if t := v.Const; !expanded[t] && !all.isRead(v) {
				expanded[t] = true
				held -= t.Bytes()
			}
		}
		if len(parts) > 0 {
			f := &folding{constants: all, elems: d.elems}
			f.shape, _ = n.Input(len(n.Inputs()) - 1).Ints() // of Reshape
			f.follow(n.Outputs[0], buffer{n, d.elem})
			f.merge()
			for _, l := range f.copies { // a transposed view of an expanded tensor is followed from both
				if !counted[l.buffer] {
					counted[l.buffer] = true
					held += l.bytes
				}
			}
		}
	}
	return held, nil
}

// isRead reports whether something reads v that is not folded.
func (c *constants) isRead(v *ir.Value) bool {
	return slices.ContainsFunc(v.Uses(), func(u ir.Use) bool { return u.Node == nil || !c.folds(u.Node) })
}

// expandedParts are the constants of the expression v whose number of elements it changes.
func (c *constants) expandedParts(v *ir.Value) (parts []*ir.Value) {
	var s subtree
	s.walk(v)
	for _, leaf := range s.leaves {
		if c.folding(leaf).unknown {
			parts = append(parts, leaf)
		}
	}
	return parts
}
