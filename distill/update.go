package distill

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// An updating is the part of a step that changes weights.
type updating struct {
	*settings
	tape   *grad.Tape
	feeds  map[string]*ir.Array // arrays of variables by the names of inputs
	hyper  *ir.Value
	frozen *ir.Value // the same without weight decay
	sums   []*ir.Value
}

func newUpdating(s *settings, t *grad.Tape) *updating {
	return &updating{settings: s, tape: t, feeds: map[string]*ir.Array{}, hyper: t.Input("hyper", ir.Float, 4), frozen: t.Input("hyper", ir.Float, 4)}
}

// names of the inputs for hyper-parameters, which may be others than asked for.
func (u *updating) hypers() (decaying, frozen string) { return u.hyper.Name, u.frozen.Name }

// clip bounds the norm of all gradients together.
func (u *updating) clipTo(gradients []*ir.Value) {
	squares := u.tape.Own("SumSquares", 1, gradients)
	limit := ir.FloatAttr("max_norm", float32(u.clip))
	u.hyper = u.tape.Own("ClipFactor", 1, []*ir.Value{u.hyper, squares[0]}, limit)[0]
	u.frozen = u.tape.Own("ClipFactor", 1, []*ir.Value{u.frozen, squares[0]}, limit)[0]
}

// weight is the input for v's weight.
func (u *updating) weight(v *variable) *ir.Value {
	in := u.tape.Input(v.name, v.array.DType, v.array.Shape...)
	u.feeds[in.Name] = v.array
	return in
}

// add changes weight w of v by gradient g.
func (u *updating) add(v *variable, w, g *ir.Value) {
	o := u.chosen()
	in := []*ir.Value{w, g}
	for i, s := range v.states {
		state := u.tape.Input(fmt.Sprintf("%s.%d", v.name, i), s.DType, s.Shape...)
		u.feeds[state.Name] = s
		in = append(in, state)
	}
	hyper := u.frozen
	if v.decays {
		hyper = u.hyper
	}
	attrs := o.attrs
	if v.pruned {
		attrs = append(attrs[:len(attrs):len(attrs)], ir.IntAttr("keep_zeros", 1))
	}
	if u.maxNorm > 0 && len(v.array.Shape) > 1 {
		attrs = append(attrs[:len(attrs):len(attrs)], ir.FloatAttr("max_norm", float32(u.maxNorm)), ir.IntAttr("norm_axis", unitAxis(v)))
	}
	u.sums = append(u.sums, u.tape.Own(o.op, 1, append(in, hyper), attrs...)[0])
}

// unitAxis is the axis of a weight along which units lie: the columns of a matrix that is multiplied from the
// right, the filters of a convolution.
func unitAxis(v *variable) int64 {
	if len(v.array.Shape) == 2 {
		return 1
	}
	return 0
}

// total is the sum of the squares of all gradients.
func (u *updating) total() *ir.Value {
	if len(u.sums) == 1 {
		return u.sums[0]
	}
	return u.tape.Op("Sum", u.sums)
}
