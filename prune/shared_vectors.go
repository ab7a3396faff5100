package prune

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// sharedVectors are the vectors that several nodes read, since exporters store equal biases once. While channels are
// removed each use has a copy of its own: the channels of all their consumers would be pruned together otherwise.
type sharedVectors struct {
	all    [][]*ir.Value // each vector with its copies
	before map[*ir.Value]*ir.Tensor
	copies map[*ir.Value]bool
}

// separate copies the shared vectors of m.
func separate(m *ir.Model) *sharedVectors {
	s := &sharedVectors{before: map[*ir.Value]*ir.Tensor{}, copies: map[*ir.Value]bool{}}
	for g := range m.Graphs() {
		for _, v := range slices.Clone(g.Consts()) {
			if t := v.Const; len(t.Shape) == 1 && t.Shape[0] > 1 && t.DType.IsFloat() && !v.IsInput() && !pass.StoredSmaller(t) {
				s.separate(v)
			}
		}
	}
	return s
}

func (s *sharedVectors) separate(v *ir.Value) {
	group, t := []*ir.Value{v}, v.Const
	for i, u := range slices.Clone(v.Uses()) {
		if i == 0 || u.Node == nil || u.Node.Graph() != v.Graph() {
			continue
		}
		w := v.Graph().AddConst(v.Name, &ir.Tensor{Spec: t.Spec, Source: t.Source})
		u.Node.SetInput(u.Index, w)
		s.copies[w], s.before[w] = true, w.Const
		group = append(group, w)
	}
	if len(group) > 1 {
		s.before[v] = t
		s.all = append(s.all, group)
	}
}

// join makes one value of those of a vector that did not change.
func (s *sharedVectors) join() {
	for _, group := range s.all {
		whole := slices.DeleteFunc(group, func(v *ir.Value) bool { return v.Removed() || v.Const != s.before[v] })
		for i, v := range whole {
			if i > 0 {
				v.ReplaceUses(whole[0])
				v.Drop()
			}
		}
	}
}
