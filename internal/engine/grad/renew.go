package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// cheap are the operators that take a pass or two over their input.
var cheap = []string{
	"BatchNormalization", "BatchNormTrain", "LayerNormalization", "RMSNormalization", "InstanceNormalization",
	"Relu", "LeakyRelu", "PRelu", "Clip", "Elu", "Selu", "Gelu", "Swish", "Mish", "HardSwish", "HardSigmoid", "Sigmoid", "Tanh", "Softplus",
	"Add", "Sub", "Mul",
}

const (
	longestChain = 4 // cheap operators that are computed again one after another
	leastIdle    = 6 // nodes that come between the last reader of a value going forward and the first one on the way back
)

// Renew makes the way back compute again what costs little: results of cheap operators that follow from results which are still
// there when they are read. Of a convolution with normalization and activation behind it, only what the convolution made is kept then. It is called
// once, behind Backward and Recompute, whose copies it renews as well. The same numbers come out, bit for bit.
func (t *Tape) Renew() {
	r := &renewal{Tape: t, inside: t.inForward(), at: t.order(), renewed: map[*ir.Value]bool{}}
	for _, n := range t.copies {
		r.inside[n] = true
	}
	var wanted []*ir.Value
	for n := range t.Graph().Nodes() {
		if v := n.Outputs[0]; r.inside[n] && v != nil && r.pays(v) && r.follows(v, r.at[r.reader(v)], longestChain) {
			r.renewed[v] = true
			wanted = append(wanted, v)
		}
	}
	for _, v := range wanted {
		r.renew(v)
	}
}

type renewal struct {
	*Tape
	inside  map[*ir.Node]bool // nodes that compute results, the first time or again
	at      map[*ir.Node]int
	renewed map[*ir.Value]bool
}

// reader is the first node of the way back that reads v, nil if there is none.
func (r *renewal) reader(v *ir.Value) (first *ir.Node) {
	for _, u := range later(v, r.inside) {
		if first == nil || r.at[u.Node] < r.at[first] {
			first = u.Node
		}
	}
	return first
}

// pays reports whether v lies idle before the way back reads it.
func (r *renewal) pays(v *ir.Value) bool {
	first := r.reader(v)
	if first == nil || slices.ContainsFunc(v.Uses(), func(u ir.Use) bool { return u.Node == nil }) {
		return false
	}
	last := r.at[v.Producer()]
	for _, u := range v.Uses() {
		if r.inside[u.Node] {
			last = max(last, r.at[u.Node])
		}
	}
	return r.at[first]-last > leastIdle
}

// follows reports whether v can be computed again at that place from what is there.
func (r *renewal) follows(v *ir.Value, when, chain int) bool {
	n := v.Producer()
	if chain == 0 || n == nil || !r.inside[n] || !slices.Contains(cheap, n.Op.Type) || !is(n, "", n.Op.Type) && !is(n, own, n.Op.Type) {
		return false
	}
	return !slices.ContainsFunc(n.Inputs(), func(x *ir.Value) bool {
		return x != nil && !r.there(x, when) && !r.follows(x, when, chain-1)
	})
}

// there reports whether x is kept until that place anyway.
func (r *renewal) there(x *ir.Value, when int) bool {
	if x.Producer() == nil {
		return true
	}
	return !r.renewed[x] && slices.ContainsFunc(later(x, r.inside), func(u ir.Use) bool { return r.at[u.Node] >= when })
}

// renew lets the readers of v on the way back read its copy.
func (r *renewal) renew(v *ir.Value) {
	first := r.reader(v)
	uses := later(v, r.inside)
	made := r.copy(v, first, r.at[first])
	for _, u := range uses {
		u.Node.SetInput(u.Index, made)
	}
}

// copy computes v again before a node, and what it needs for that.
func (r *renewal) copy(v *ir.Value, before *ir.Node, when int) *ir.Value {
	n := v.Producer()
	in := slices.Clone(n.Inputs())
	for i, x := range in {
		if x != nil && !r.there(x, when) {
			in[i] = r.copy(x, before, when)
		}
	}
	return r.again(n, in, before).Outputs[0]
}
