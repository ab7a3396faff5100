package dataset

import "github.com/mcompress/mcompress/ir"

// language sets the number of tokens and of past positions, if the model is a language model.
func (g *generator) language() {
	ids, ok := sequence(g.inputs)
	if !ok {
		return
	}
	for i, in := range g.inputs {
		shape := g.specs[i].Shape
		if in.Name == ids.Name {
			g.tokens = shape[1]
		}
		if axis := in.growth(); in.role() == cache && axis >= 0 && axis < len(shape) {
			g.past = shape[axis]
		}
	}
}

// follows reports whether the values of in follow from the tokens: those of a mask by tokens where a random one would be none.
func (g *generator) follows(in Input, spec ir.Spec) bool {
	if g.tokens == 0 || len(spec.Shape) == 0 && in.role() != total && in.role() != zeros {
		return false
	}
	switch in.role() {
	case positions, total, lengths, zeros:
		_, given := g.options.Ranges[in.Name]
		return !given || in.role() != positions || g.past+g.tokens <= g.options.Ranges[in.Name][1]+1
	case mask:
		return len(spec.Shape) > 2 || in.elem().IsFloat() || in.elem() == ir.Bool
	}
	return false
}

func (g *generator) derived(in Input, spec ir.Spec, memory *buffers) (*ir.Array, error) {
	switch in.role() {
	case positions:
		return counted(in, spec.Shape, g.past, memory)
	case total:
		return filled(in, spec.Shape, float64(g.past+g.tokens), memory)
	case lengths:
		return filled(in, spec.Shape, float64(g.past+g.tokens-1), memory)
	case mask:
		return masked(in, spec.Shape, 0, g.past, memory)
	}
	return filled(in, spec.Shape, 0, memory)
}
