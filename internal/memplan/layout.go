package memplan

import (
	"context"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory/layout"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// channelsLast counts for a run with these inputs, without fusions.
func channelsLast(ctx context.Context, m *ir.Model, in map[string]ir.Spec) (*memoryplan.Layout, error) {
	e, err := engine.Open(ctx, m, engine.Options{PlanOnly: true, NoFusion: true, KeepAll: true})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	types, err := e.Types(in)
	if err != nil {
		return nil, err
	}
	maps.Copy(types, in)
	b := &imageGraph{types: types, index: map[*ir.Value]int{}}
	b.build(m.Graph)
	effect, err := layout.ChannelsLast(&b.graph)
	if err != nil {
		return nil, err
	}
	return &memoryplan.Layout{
		Sensitive: b.sensitive, Nodes: b.nodes, Unknown: b.unknown,
		Added: moves(effect.Added), Kept: moves(effect.Kept), Vanished: moves(effect.Vanished),
		First: memoryplan.Patches(effect.First), Last: memoryplan.Patches(effect.Last), Saved: effect.Saved(),
	}, nil
}

func moves(list []layout.Move) []memoryplan.Move {
	ms := []memoryplan.Move{}
	for _, m := range list {
		ms = append(ms, memoryplan.Move(m))
	}
	return ms
}

// An imageGraph is the graph of a model's images: values of at least three axes that are not
// constant.
type imageGraph struct {
	types  map[string]ir.Spec
	graph  layout.Graph
	index  map[*ir.Value]int
	values []*ir.Value // of the graph's values

	nodes, sensitive, unknown int
}

func (b *imageGraph) build(g *ir.Graph) {
	for _, v := range g.Inputs {
		b.value(v)
	}
	for n := range g.Nodes() {
		for _, v := range n.Outputs {
			b.value(v)
		}
	}
	for _, v := range g.Outputs {
		if i, image := b.index[v]; image {
			b.graph.Values[i].Output = true
		}
	}
	for n := range g.Nodes() {
		b.nodes++
		b.node(n)
	}
	// A subgraph reads outer values in the layout that they have in the file, whatever its nodes are.
	for i, v := range b.values {
		if slices.ContainsFunc(v.Uses(), func(u ir.Use) bool { return within(u) != g }) {
			b.graph.Nodes = append(b.graph.Nodes,
				layout.Node{Name: "subgraph that reads " + v.Name, Role: layout.Breaking, Inputs: []int{i}})
		}
	}
}

// within is the graph of the consumer of a value.
func within(u ir.Use) *ir.Graph {
	if u.Node != nil {
		return u.Node.Graph()
	}
	return u.Graph
}

// value adds v, if it is an image. Whether both layouts have the same bytes is computed for
// channels first.
func (b *imageGraph) value(v *ir.Value) {
	if v == nil || v.Const != nil {
		return
	}
	spec, known := b.types[v.Name]
	if !known {
		b.unknown++
		return
	}
	if len(spec.Shape) < 3 || spec.Bytes() == 0 {
		return
	}
	b.index[v] = len(b.graph.Values)
	b.values = append(b.values, v)
	channels := spec.Shape[1]
	b.graph.Values = append(b.graph.Values, layout.Value{
		// One channel or one pixel per image: a transpose moves no byte.
		Name: v.Name, Bytes: spec.Bytes(), Same: channels == 1 || spec.Elems() == channels*spec.Shape[0],
	})
}

// images are the positions of those of vs that are images.
func (b *imageGraph) images(vs []*ir.Value) []int {
	var is []int
	for _, v := range vs {
		if i, image := b.index[v]; image {
			is = append(is, i)
		}
	}
	return is
}

func (b *imageGraph) node(n *ir.Node) {
	h := ruleOf(n)
	inputs := n.Inputs()
	out := layout.Node{Name: n.Label(), Outputs: b.images(n.Outputs)}
	rank := 0
	if len(inputs) > 0 && inputs[0] != nil {
		rank = len(b.types[inputs[0].Name].Shape)
	}
	// Of three axes both permutations are 0, 2, 1. One before a sensitive node, which is channels first, is to
	// channels first.
	if out.Role = h.roleOf(n, rank); out.Role == layout.ToLast && rank == 3 && b.feedsSensitive(n) {
		out.Role = layout.ToFirst
	}
	if h.one && out.Role != layout.Breaking {
		inputs = inputs[:min(len(inputs), 1)]
	}
	out.Inputs = b.images(inputs)
	if len(out.Inputs) == 0 && len(out.Outputs) == 0 {
		return
	}
	if !b.sameRank(n, &out) {
		out.Role, out.Inputs = layout.Breaking, b.images(n.Inputs())
	}
	if out.Role == layout.Sensitive {
		b.sensitive++
		out.Unfolds = b.window(n)
	}
	b.graph.Nodes = append(b.graph.Nodes, out)
}

// feedsSensitive reports whether a layout-sensitive node consumes the output of n.
func (b *imageGraph) feedsSensitive(n *ir.Node) bool {
	return slices.ContainsFunc(n.Outputs[0].Uses(), func(u ir.Use) bool {
		return u.Node != nil && ruleOf(u.Node).role == layout.Sensitive
	})
}

// sameRank reports whether all operands of n are images of one rank, or have one element:
// broadcasting of other shapes counts axes from the end.
func (b *imageGraph) sameRank(n *ir.Node, out *layout.Node) bool {
	if out.Role == layout.ToLast || out.Role == layout.ToFirst {
		return len(out.Inputs) == 1 && len(out.Outputs) == 1
	}
	if out.Role != layout.Agnostic {
		return out.Role != layout.Sensitive || len(out.Inputs) > 0
	}
	rank := -1
	read := n.Inputs()
	if ruleOf(n).one {
		read = read[:1]
	}
	for _, v := range slices.Concat(read, n.Outputs) {
		if v == nil || v.Const != nil {
			continue
		}
		spec, known := b.types[v.Name]
		if !known {
			return false
		}
		if spec.Elems() == 1 && len(spec.Shape) < 3 {
			continue
		}
		if rank >= 0 && len(spec.Shape) != rank {
			return false
		}
		rank = len(spec.Shape)
	}
	return rank >= 3
}
