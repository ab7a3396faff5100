package verify

import (
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// ports are inputs and outputs without a model.
type ports struct{ in, out []op.Port }

func (p ports) Inputs() []op.Port  { return p.in }
func (p ports) Outputs() []op.Port { return p.out }

func port(name string, axes ...string) op.Port {
	t := &ir.Type{Elem: ir.Float}
	for _, a := range axes {
		t.Shape = append(t.Shape, ir.Dim{Param: a, N: -1})
	}
	return op.Port{Name: name, Type: t}
}

// Values at padding do not change errors and agreement, on whichever axis the tokens are; those of tokens that
// count do.
func TestPaddingCountsNowhere(t *testing.T) {
	const n, length = 4, 6
	r := rand.New(rand.NewPCG(3, 3))
	mask := ir.NewArray(ir.Int64, n, length)
	for i := range n {
		for k := range 1 + r.IntN(length) {
			ir.View[int64](mask)[i*length+k] = 1
		}
	}
	ir.View[int64](mask)[length-1] = 0
	s := ports{[]op.Port{port("attention_mask", "b", "s")}, []op.Port{port("start", "b", "s"), port("classes", "b", "c"),
		port("other", "b", "t", "c")}}
	p := NewPadding(s, &dataset.Batch{N: n, Inputs: map[string]*ir.Array{"attention_mask": mask}})
	for _, c := range []struct {
		name  string
		shape []int64
		axis  int // of the tokens; 0 for none
	}{
		{"scores", []int64{n, length, 5}, 1}, {"heads", []int64{n, 2, length, 3}, 2}, {"start", []int64{n, length}, 1},
		{"classes", []int64{n, length}, 0}, {"other", []int64{n, length, 5}, 0}, {"pooled", []int64{n, 5}, 0},
	} {
		want := ir.NewArray(ir.Float, c.shape...)
		xs := ir.View[float32](want)
		for i := range xs {
			xs[i] = float32(r.NormFloat64())
		}
		for _, padded := range []bool{true, false} {
			got, changed := want.Clone(), 0
			ys := ir.View[float32](got)
			inner := 1
			for _, d := range c.shape[max(c.axis, 1)+1:] {
				inner *= int(d)
			}
			for i := range ys {
				token := i / inner % length
				sample := i / (len(ys) / n)
				if (ir.View[int64](mask)[sample*length+token] == 0) == padded {
					ys[i] = -ys[i]
					changed++
				}
			}
			sums, agree := &sums{}, tally{}
			for w, g := range p.Parts(c.name, want, got) {
				sums.add(w, g)
				agree.compare(w, g)
			}
			exact := sums.noise == 0 && agree.yes == agree.all
			if c.axis > 0 && exact != padded || c.axis == 0 && exact || changed == 0 {
				t.Errorf("%s, padding changed: %v: noise %v, agreement %v of %v", c.name, padded, sums.noise, agree.yes, agree.all)
			}
			if c.axis == 0 && sums.elements != want.Elems() {
				t.Errorf("%s: %d elements", c.name, sums.elements)
			}
		}
	}
	if NewPadding(s, &dataset.Batch{N: n, Inputs: map[string]*ir.Array{"key_padding_mask": mask}}) != nil {
		t.Error("a mask of other tokens is one of padding")
	}
}
