package layerwise

import (
	"context"
	"fmt"
	"strconv"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// A part is a model of consecutive nodes of another model. Its values are named by numbers, as the names of the
// original need not be unique.
type part struct {
	*ir.Model
	graphs  map[*ir.Graph]*ir.Graph
	copies  map[*ir.Value]*ir.Value
	entries []*ir.Value // inputs of the part
	exits   []*ir.Value // outputs of the part
	walk    *Walk
}

// part copies the nodes [w.next, end), with the constant expressions that they read; its outputs are the values that
// later nodes read, v, and computed, which are such expressions.
func (w *Walk) part(end int, v *ir.Value, computed []*ir.Value) *part {
	p := &part{Model: ir.NewModel(), copies: map[*ir.Value]*ir.Value{}, walk: w}
	p.graphs = map[*ir.Graph]*ir.Graph{w.model.Graph: p.Graph}
	p.IRVersion, p.Opsets, p.Functions = w.model.IRVersion, w.model.Opsets, w.model.Functions
	for _, n := range w.order[w.next:end] {
		p.node(n)
		for _, o := range n.Outputs {
			// What only nodes of the part read is not kept.
			if o != nil && (w.lastUse[o] >= end || o == v) {
				p.exits = append(p.exits, o)
				p.Graph.AddOutput(p.copies[o])
			}
		}
	}
	for _, o := range computed {
		p.exits = append(p.exits, o)
		p.Graph.AddOutput(p.value(o, true))
	}
	return p
}

// node appends a copy of n, subgraphs included, to the copy of its graph.
func (p *part) node(n *ir.Node) {
	g := p.graphs[n.Graph()]
	producerIndex := g.NewNode(n.Op, p.values(n.Inputs(), true))
	producerIndex.Name = n.Name
	for _, a := range n.Attrs {
		producerIndex.Attrs = append(producerIndex.Attrs, p.attr(producerIndex, a))
	}
	producerIndex.SetOutputs(p.values(n.Outputs, false)...)
	g.Append(producerIndex)
}

// attr is a with copies of its subgraphs.
func (p *part) attr(owner *ir.Node, a *ir.Attr) *ir.Attr {
	if a.Graph == nil && a.Graphs == nil {
		return a
	}
	b := *a
	if a.Graph != nil {
		b.Graph = p.graph(owner, a.Graph)
	}
	b.Graphs = nil
	for _, g := range a.Graphs {
		b.Graphs = append(b.Graphs, p.graph(owner, g))
	}
	return &b
}

func (p *part) graph(owner *ir.Node, g *ir.Graph) *ir.Graph {
	c := ir.NewSubgraph(owner.Graph(), owner)
	p.graphs[g] = c
	c.Inputs = p.values(g.Inputs, false)
	for n := range g.Nodes() {
		p.node(n)
	}
	c.SetOutputs(p.values(g.Outputs, true)...)
	return c
}

// values are the copies of values that are read, or computed.
func (p *part) values(vs []*ir.Value, read bool) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		if v != nil {
			out[i] = p.value(v, read)
		}
	}
	return out
}

// value is the copy of v. A value of the main graph that is read before the part computes it is an input of the part,
// unless it is a constant expression, which the part computes.
func (p *part) value(v *ir.Value, read bool) *ir.Value {
	if c := p.copies[v]; c != nil {
		return c
	}
	// Copied into each part that reads it, and computed there from the weights as they are now: computed once before
	// all parts, views held the weight from before its replacement, and later layers were fitted to it.
	if read && p.walk.computed(v) {
		p.node(v.Producer())
		return p.copies[v]
	}
	g := p.graphs[v.Graph()]
	c := g.AddValue(strconv.Itoa(len(p.copies)))
	p.copies[v] = c
	switch {
	case v.Const != nil && p.walk.replacements[v] != nil:
		c.SetConst(p.walk.replacements[v])
	case v.Initializer() != nil:
		c.SetConst(v.Initializer())
	// Computed by an earlier part, and stored.
	case g == p.Graph && read:
		g.Inputs = append(g.Inputs, c)
		p.entries = append(p.entries, v)
	default:
		c.Type = v.Type
	}
	return c
}

// run runs p on each sample: stored activations in, stored activations out.
func (p *part) run(ctx context.Context, samples []map[*ir.Value]storedActivation, store *store,
	o engine.Options) error {
	if len(samples) == 0 || len(p.exits) == 0 {
		return nil
	}
	p.declare(samples[0])
	e, err := engine.Open(ctx, p.Model, o)
	if err != nil {
		return err
	}
	defer e.Close()
	for i, s := range samples {
		if err := p.sample(ctx, e, s, store); err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
	}
	return nil
}

// declare sets element types and ranks of the inputs. Sizes may differ between samples.
func (p *part) declare(s map[*ir.Value]storedActivation) {
	for _, v := range p.entries {
		if a := s[v].Array; a != nil && a.Kind == ir.Dense {
			p.copies[v].Type = &ir.Type{Elem: a.DType, Shape: make([]ir.Dim, len(a.Shape))}
			for i := range a.Shape {
				p.copies[v].Type.Shape[i].N = -1
			}
		}
	}
}

func (p *part) sample(ctx context.Context, e *engine.Interpreter, s map[*ir.Value]storedActivation,
	store *store) error {
	in := map[string]*ir.Array{}
	for _, v := range p.entries {
		a, err := store.get(s[v])
		if err != nil {
			return err
		}
		in[p.copies[v].Name] = a
	}
	got, err := e.Run(ctx, in, nil)
	if err != nil {
		return err
	}
	for _, v := range p.exits {
		if s[v], err = store.put(got[p.copies[v].Name]); err != nil {
			return err
		}
	}
	return nil
}
