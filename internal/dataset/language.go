package dataset

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
)

// language sets the number of tokens and of past positions, if the model is a language model, or another one with
// attention whose lengths are inputs.
func (g *generator) language(chosen *axes) {
	ids, ok := sequence(g.inputs)
	for i, in := range g.inputs {
		shape := g.specs[i].Shape
		if ok && in.Name == ids.Name {
			g.tokens = shape[1]
		}
		if axis := in.growth(); in.role() == cache && axis >= 0 && axis < len(shape) {
			g.past = shape[axis]
		}
	}
	for _, n := range withLengths(g.inputs) {
		if tokens := queries(n, chosen); g.tokens == 0 {
			g.tokens = tokens
		}
		g.past = g.maxPast(n)
	}
}

// withLengths are the nodes of attention of which an input of the graph is the number of keys.
func withLengths(inputs []Input) []*ir.Node {
	var nodes []*ir.Node
	for _, in := range inputs {
		if in.value == nil {
			continue
		}
		for _, u := range in.value.Uses() {
			if u.Node == nil {
				continue
			}
			if f := operator.Of(u.Node); f.Total > 0 && u.Index == f.Total || f.Lengths > 0 && u.Index == f.Lengths {
				nodes = append(nodes, u.Node)
			}
		}
	}
	return nodes
}

// queries is the number of queries of a node of attention with inputs of the chosen sizes, 0 if it is not known.
func queries(n *ir.Node, chosen *axes) int64 {
	if n.Input(0) == nil {
		return 0
	}
	dims, ok := opset.ShapesFor(chosen.shapes()).Of(n.Input(0))
	if !ok || len(dims) != 3 || !dims[1].Known() {
		return 0
	}
	return dims[1].N
}

// maxPast is the number of past positions with which the tokens of n fit into its caches, if those have a constant
// size, and into its table of positions.
func (g *generator) maxPast(n *ir.Node) int64 {
	past, f := g.past, operator.Of(n)
	for _, s := range f.States {
		// A cache of a window holds the last positions only, after any number of others.
		if size := length(n.Input(s.Input), int64(s.Axis)); size > 0 && operator.SlidingWindow(n) == 0 {
			past = min(past, max(0, size-g.tokens))
		}
	}
	for _, i := range f.Rotary {
		if rows := length(n.Input(i), 0); rows > 0 {
			past = min(past, max(0, rows-g.tokens))
		}
	}
	return past
}

// followsTokens reports whether the values of in follow from the tokens: those of a mask by tokens where a random
// one would be none.
func (g *generator) followsTokens(in Input, spec ir.Spec) bool {
	if g.tokens == 0 || len(spec.Shape) == 0 && in.role() != total && in.role() != zeros {
		return false
	}
	switch in.role() {
	case positions, total, lengths, zeros:
		_, given := g.options.Ranges[in.Name]
		return !given || in.role() != positions || g.past+g.tokens <= g.options.Ranges[in.Name][1]+1
	case mask:
		// Integer masks of two axes are ones, which random values of theirs are already.
		return len(spec.Shape) > 2 || in.elem().IsFloat() || in.elem() == ir.Bool
	}
	return false
}

func (g *generator) makeDerived(in Input, spec ir.Spec, memory *buffers) (*ir.Array, error) {
	switch in.role() {
	case positions:
		return positionArray(in, spec.Shape, g.past, memory)
	case total:
		return constantArray(in, spec.Shape, float64(g.past+g.tokens), memory)
	case lengths:
		return constantArray(in, spec.Shape, float64(g.past+g.tokens-1), memory)
	case mask:
		return maskArray(in, spec.Shape, 0, g.past, memory)
	}
	return constantArray(in, spec.Shape, 0, memory)
}
