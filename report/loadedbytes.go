package report

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// LoadedBytes is the bytes of the constants of m, of which there is no ledger, once the runtime of Totals.Runtime has loaded it: sparse forms
// and most quantized ones are expanded.
func LoadedBytes(ctx context.Context, m *ir.Model) (int64, error) {
	_, held, err := sizes(ctx, Model{IR: m})
	if err != nil {
		return 0, err
	}
	all, decoded, expanded := newConstants(m), newParameterCounter(m).decoded, map[*ir.Tensor]bool{}
	for n := range m.Nodes() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		d := decoded[n]
		if !d.decodes || d.elems < 0 || !all.folds(n) || !all.isRead(n.Outputs[0]) {
			continue
		}
		parts := all.expandedParts(n.Outputs[0])
		for _, t := range parts {
			if !expanded[t] {
				expanded[t] = true
				held -= t.Bytes()
			}
		}
		if len(parts) > 0 {
			f := &folding{constants: all, elems: d.elems}
			f.shape, _ = n.Input(len(n.Inputs()) - 1).Ints() // of Reshape
			f.follow(n.Outputs[0], buffer{n, d.elem})
			f.merge()
			held += f.total()
		}
	}
	return held, nil
}

// isRead reports whether something reads v that is not folded.
func (c *constants) isRead(v *ir.Value) bool {
	return slices.ContainsFunc(v.Uses(), func(u ir.Use) bool { return u.Node == nil || !c.folds(u.Node) })
}

// expandedParts are the constants of the expression v whose number of elements it changes.
func (c *constants) expandedParts(v *ir.Value) (parts []*ir.Tensor) {
	var s subtree
	s.walk(v)
	for _, leaf := range s.leaves {
		if c.folding(leaf).unknown {
			parts = append(parts, leaf.Const)
		}
	}
	return parts
}
