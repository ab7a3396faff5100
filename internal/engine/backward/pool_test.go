package backward

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// MaxPoolKeep is bit-identical to MaxPool, also with NaN, infinities and equal numbers, and its second output selects
// the maximum of each window.
func TestMaxPoolKeepEqualsMaxPool(t *testing.T) {
	for _, attrs := range pooled() {
		x := gaussian(3, 2, 3, 40, 41)
		v := ir.View[float32](x)
		for i := range v {
			if i%5 == 0 || i%400 < 90 {
				v[i] = 0
			}
		}
		checkKeep(t, attrs, x)
		for i := range v {
			switch {
			case i%97 == 0:
				v[i] = float32(math.NaN())
			case i%701 < 60:
				v[i] = float32(math.Inf(-1))
			}
		}
		checkKeep(t, attrs, x)
	}
}

func checkKeep(t *testing.T, attrs []*ir.Attr, x *ir.Array) {
	t.Helper()
	got := trial{"MaxPoolKeep", attrs, []*ir.Array{x}, 2}.must(t, 2)
	y, indices := maxPool(t, attrs, x)
	if !bytes.Equal(got[0].Data, y.Data) {
		t.Fatalf("MaxPool %v and MaxPoolKeep differ", attrs)
	}
	// The gradient of a sum counts how often each element is the largest of a window.
	ones := ir.NewArray(ir.Float, y.Shape...)
	want := make([]float32, x.Elems())
	for i, at := range ir.View[int64](indices) {
		ir.View[float32](ones)[i] = 1
		if at >= 0 {
			want[at]++
		}
	}
	attrs = append(slices.Clone(attrs), ir.IntsAttr("shape", x.Shape...))
	dx := trial{"MaxPoolGrad", attrs, []*ir.Array{ones, got[1]}, 1}.must(t, 2)
	if !slices.Equal(ir.View[float32](dx[0]), want) {
		t.Errorf("gradients of MaxPool %v do not match Indices", attrs)
	}
}

// maxPool returns MaxPool's outputs. Y is computed without Indices, by another kernel.
func maxPool(t *testing.T, attrs []*ir.Attr, x *ir.Array) (y, indices *ir.Array) {
	t.Helper()
	i := slices.IndexFunc(conv.Ops(), func(o op.Op) bool { return o.Type == "MaxPool" })
	n := op.NewNode(ir.OpID{Type: "MaxPool"}, 22, attrs, nil)
	n.Consumed = []bool{true, true}
	specs, err := conv.Ops()[i].Shape(n, []*ir.Array{x})
	if err != nil {
		t.Fatal(err)
	}
	pool := op.NewPool(1)
	defer pool.Close()
	y, indices = ir.NewArray(ir.Float, specs[0].Shape...), ir.NewArray(ir.Int64, specs[1].Shape...)
	for _, out := range [][]*ir.Array{{ir.NewArray(ir.Float, specs[0].Shape...), indices}, {y, nil}} {
		if err := conv.Ops()[i].Run(&op.Call{Node: n, In: []*ir.Array{x}, Out: out, Pool: pool}); err != nil {
			t.Fatal(err)
		}
	}
	return y, indices
}

// BatchNormPoolTrain is bit-identical to BatchNormTrain and MaxPoolKeep.
func TestBatchNormPoolEqualsSeparateNodes(t *testing.T) {
	for _, attrs := range pooled()[:3] {
		x, scale, b := gaussian(1, 3, 4, 40, 41), gaussian(2, 4), gaussian(3, 4)
		norm := trial{"BatchNormTrain", nil, []*ir.Array{x, scale, b, gaussian(4, 4), gaussian(5, 4)}, 5}.must(t, 2)
		pool := trial{"MaxPoolKeep", attrs, norm[:1], 2}.must(t, 2)
		both := trial{"BatchNormPoolTrain", attrs, []*ir.Array{x, scale, b, gaussian(4, 4), gaussian(5, 4)},
			6}.must(t, 2)
		for i, want := range slices.Concat(pool, norm[1:]) {
			if !bytes.Equal(both[i].Data, want.Data) {
				t.Errorf("%v: output %d differs", attrs, i)
			}
		}
		dy := gaussian(6, pool[0].Shape...)
		separate := trial{"MaxPoolGrad", append(slices.Clone(attrs), ir.IntsAttr("shape", x.Shape...)),
			[]*ir.Array{dy, pool[1]}, 1}.must(t, 2)
		want := trial{"BatchNormGrad", nil, []*ir.Array{x, scale, norm[1], norm[2], separate[0]}, 3}.must(t, 2)
		got := trial{"BatchNormPoolGrad", attrs, []*ir.Array{x, scale, norm[1], norm[2], dy, pool[1]}, 3}.must(t, 2)
		for i := range want {
			if !bytes.Equal(got[i].Data, want[i].Data) {
				t.Errorf("%v: gradient %d differs", attrs, i)
			}
		}
	}
}
