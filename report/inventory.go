package report

import (
	"context"
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An index finds a result's constants by graph and name.
type index struct {
	graphs  []*ir.Graph
	consts  map[place]*ir.Tensor
	scoped  map[scoped]*ir.Tensor
	loaded  map[*ir.Tensor]*folding
	ordinal map[*ir.Graph]int // of graphs in the models that rows point into
}

type place struct {
	graph *ir.Graph
	name  string
}

type scoped struct{ scope, name string }

func newIndex(ctx context.Context, m *ir.Model) (*index, error) {
	n := 0
	for g := range m.Graphs() {
		n += len(g.Consts())
	}
	x := &index{
		consts: make(map[place]*ir.Tensor, n), scoped: make(map[scoped]*ir.Tensor, n),
		loaded: make(map[*ir.Tensor]*folding, n), ordinal: map[*ir.Graph]int{},
	}
	all := newConstants(m)
	for g := range m.Graphs() {
		x.graphs = append(x.graphs, g)
		scope := pass.Scope(g)
		for _, v := range g.Consts() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			x.consts[place{g, v.Name}] = v.Const
			x.scoped[scoped{scope, v.Name}] = v.Const
			x.loaded[v.Const] = all.folding(v)
		}
	}
	return x, nil
}

// find is the result's constant that was written for p, nil if there is none. A
// written model has its graphs in the order of the one in memory.
func (x *index) find(p pass.Part) *ir.Tensor {
	if p.Value == nil || p.Value.Removed() {
		return nil
	}
	g := p.Value.Graph()
	at, known := x.ordinal[g]
	if !known {
		i := 0
		for h := range g.Model().Graphs() {
			x.ordinal[h] = i
			i++
		}
		if at, known = x.ordinal[g]; !known {
			return nil
		}
	}
	if at >= len(x.graphs) {
		return nil
	}
	t := x.consts[place{x.graphs[at], p.Value.Name}]
	if t == nil || !alike(t.Spec, p.Spec) {
		return nil
	}
	return t
}

func alike(a, b ir.Spec) bool { return a.DType == b.DType && slices.Equal(a.Shape, b.Shape) }

// An entry is one distinct tensor of a model.
type entry struct {
	*ir.Tensor
	parts []*ir.Tensor // tensors that the file stores for it: itself, or a sparse tensor's values and indices
	held  int64        // bytes once a runtime has loaded it
}

// entries ranges over the tensors of m: constants, and tensors in attributes.
func entries(m Model) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		all, seen := newConstants(m.IR), map[*ir.Tensor]bool{}
		each := func(e entry) bool {
			if seen[e.Tensor] {
				return true
			}
			seen[e.Tensor] = true
			return yield(e)
		}
		for g := range m.IR.Graphs() {
			for _, v := range g.Consts() {
				if !each(all.entry(v, m.Planned)) {
					return
				}
			}
		}
		for n := range m.IR.Nodes() {
			for _, a := range n.Attrs {
				for _, e := range inAttr(a) {
					if !each(e) {
						return
					}
				}
			}
		}
	}
}

// entry is the entry of v, whose parts are the stored tensors: an opened model computes only dense tensors from sparse
// ones, and so does one that is to be written from those that are written back as they came.
func (c *constants) entry(v *ir.Value, planned bool) entry {
	t := v.Const
	e := entry{t, []*ir.Tensor{t}, c.loadedBytes(v)}
	file, ok := v.Extra.(interface{ Keeps(*ir.Tensor) bool })
	kept := ok && file.Keeps(t)
	// Values in a typed field are decoded from no tensor.
	if o, ok := t.Source.(ir.Output); ok && len(o.Of.In) > 0 && (!planned || kept) {
		e.parts = o.Of.In
	}
	return e
}

func inAttr(a *ir.Attr) []entry {
	var es []entry
	for _, t := range append(slices.Clip(a.Tensors), a.Tensor) {
		if t != nil {
			es = append(es, entry{t, []*ir.Tensor{t}, t.Bytes()})
		}
	}
	if s := a.Sparse; s != nil {
		dense := ir.Spec{DType: s.Values.DType, Shape: s.Shape}
		es = append(es, entry{s.Values, []*ir.Tensor{s.Values, s.Indices}, dense.Bytes()})
	}
	return es
}

// A region identifies bytes of a file: several tensors may lie on the same ones.
type region struct {
	r   any
	off int64
	n   int64
}

// sizes sums up m: bytes by element type as the files store them, and bytes held.
func sizes(ctx context.Context, m Model) (stored map[ir.DType]int64, held int64, err error) {
	stored = map[ir.DType]int64{}
	seen := map[region]bool{}
	for e := range entries(m) {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		held += e.held
		for _, t := range e.parts {
			// Two initializers may share bytes of a data file, which count once.
			if s, ok := t.Source.(ir.Span); ok && reflect.TypeOf(s.R).Comparable() {
				at := region{s.R, s.Off, t.Bytes()}
				if seen[at] {
					continue
				}
				seen[at] = true
			}
			stored[t.DType] += t.Bytes()
		}
	}
	return stored, held, nil
}

// dtypes lists both sides' bytes in the order of ONNX's numbers.
func dtypes(before, after map[ir.DType]int64) []DTypeBytes {
	all := maps.Clone(before)
	maps.Copy(all, after)
	list := []DTypeBytes{}
	for _, dt := range slices.Sorted(maps.Keys(all)) {
		list = append(list, DTypeBytes{dt.String(), Change{before[dt], after[dt]}})
	}
	return list
}
