package dataset

import (
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A role is the purpose of an input, by which inputs of language models follow from the token ids.
type role uint8

const (
	data      role = iota
	tokens         // token ids: positions in an embedding table
	cache          // what earlier runs leave: keys and values, or other states
	positions      // positions of the tokens in the sequence
	mask           // positions that may be attended to, those of the cache included
	segments       // token types
	total          // the number of tokens with those of the cache
	lengths        // the same of each sequence, less one
	zeros          // settings whose default is 0 or false
)

// A Pair is an output that is the input of the next run.
type Pair struct{ Output, Input string }

// role is that of in. Operators that read it take precedence over its name.
func (in Input) role() role {
	if in.value != nil {
		// Exporters choose names freely; what an operator does with its input is certain.
		if r := usedAs(in.value); r != data {
			return r
		}
	}
	name := strings.ToLower(in.Name)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
	}
	whole := isInteger(in.elem())
	switch {
	case whole && has("position"):
		return positions
	case has("mask") && (whole || in.readsTokens()):
		return mask
	case whole && has("token_type", "segment"):
		return segments
	case has("use_cache", "logits_to_keep"):
		return zeros
	case whole && has("total_seq"):
		return total
	case whole && has("input_ids", "tokens") || whole && in.value != nil && shortest(in.value, map[*ir.Value]bool{}) > 0:
		return tokens
	case !whole && strings.HasPrefix(name, "past"):
		return cache
	}
	return data
}

// usedAs is the role by the operators that read v, data if they do not determine it.
func usedAs(v *ir.Value) role {
	if len(extensions(v)) > 0 {
		return cache
	}
	for _, u := range v.Uses() {
		if u.Node == nil {
			continue
		}
		facts := operator.Of(u.Node)
		switch {
		case slices.ContainsFunc(facts.States, func(s operator.State) bool { return s.Input == u.Index }):
			return cache
		case facts.Total > 0 && u.Index == facts.Total:
			return total
		case facts.Lengths > 0 && u.Index == facts.Lengths:
			return lengths
		}
	}
	return data
}

// readsTokens reports whether the graph of in has an input of token ids.
func (in Input) readsTokens() bool {
	g := graphOf([]Input{in})
	return g != nil && slices.ContainsFunc(Inputs(g), func(o Input) bool {
		return isInteger(o.elem()) && o.Name != in.Name && o.role() == tokens
	})
}

// An extension is a result of appending positions to a cache along an axis.
type extension struct {
	output *ir.Value
	axis   int
}

// extensions are those of v by Concat, in the order of its readers. Where there are several, axis and
// output of the cache are those of the first one, which must be the same one in every run.
func extensions(v *ir.Value) (all []extension) {
	for _, u := range v.Uses() {
		if u.Node == nil || !u.Node.Op.Is("Concat") || u.Index != 0 || len(u.Node.Inputs()) != 2 || v.Type == nil ||
			u.Node.Input(1).Const != nil {
			continue
		}
		rank := len(v.Type.Shape)
		axis := int(u.Node.Int("axis", 0))
		if axis < 0 {
			axis += rank
		}
		// Axis 0 is that of the samples, and a mask of two axes is no cache.
		if axis < 1 || axis >= rank || rank < 3 || v.Type.Shape[axis].Known() {
			continue
		}
		if o := outputOf(u.Node.Outputs[0]); o != nil {
			all = append(all, extension{o, axis})
		}
	}
	return all
}

// outputOf is the output of the model that v, or a copy of it, is; nil if it is none. v may be a value of a branch of an
// If, as in a decoder whose branches are its runs with and without a cache.
func outputOf(v *ir.Value) *ir.Value {
	for range 8 {
		if v == nil {
			return nil
		}
		var next *ir.Value
		if i := slices.Index(v.Graph().Outputs, v); i >= 0 {
			owner := v.Graph().Owner
			if owner == nil {
				return v
			}
			// The outputs of a Loop or Scan are those of its last iteration, and not in the order of its body's.
			if !owner.Op.Is("If") || i >= len(owner.Outputs) {
				return nil
			}
			v = owner.Outputs[i]
			continue
		}
		for _, u := range v.Uses() {
			if u.Node != nil && operator.Of(u.Node).Move == operator.View && operator.Of(u.Node).Elementwise == operator.Unary {
				next = u.Node.Outputs[0] // of Identity
			}
		}
		v = next
	}
	return nil
}

// growth is the axis of a cache that a run extends, -1 if there is none, as in a cache of the last positions only.
func (in Input) growth() int {
	if in.value == nil {
		return -1
	}
	if all := extensions(in.value); len(all) > 0 {
		return all[0].axis
	}
	for _, u := range in.value.Uses() {
		if u.Node == nil {
			continue
		}
		for _, s := range operator.Of(u.Node).States {
			if s.Input == u.Index && operator.SlidingWindow(u.Node) > 0 {
				return -1
			} else if s.Input == u.Index {
				return s.Axis
			}
		}
	}
	return slices.IndexFunc(in.dims(nil), func(d ir.Dim) bool {
		return strings.Contains(d.Param, "past") || strings.Contains(d.Param, "cache")
	})
}

// continuation is the output of which the cache in is the earlier state; "" if there is none.
func (in Input) continuation() string {
	if in.value == nil {
		return ""
	}
	if all := extensions(in.value); len(all) > 0 {
		return all[0].output.Name
	}
	for _, u := range in.value.Uses() {
		if u.Node == nil {
			continue
		}
		for _, s := range operator.Of(u.Node).States {
			if s.Input == u.Index && s.Output < len(u.Node.Outputs) {
				if o := outputOf(u.Node.Outputs[s.Output]); o != nil {
					return o.Name
				}
			}
		}
	}
	for _, present := range presentNames(in.Name) {
		for _, o := range in.value.Graph().Outputs {
			if o.Name == present {
				return present
			}
		}
	}
	return ""
}

// presentNames are the names by which exporters call the output that continues a cache.
func presentNames(past string) []string {
	var names []string
	for _, by := range [][2]string{{"past_key_values", "present"}, {"past_key_values", "present_key_values"},
		{"past", "present"}} {
		if rest, ok := strings.CutPrefix(past, by[0]); ok {
			names = append(names, by[1]+rest)
		}
	}
	return names
}
