package train

import (
	"math"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// sharedIndices are indices of 60,060 elements into a codebook.
func sharedIndices(entries int) *ir.Array {
	a := ir.NewArray(ir.Int32, 60060)
	for i := range ir.View[int32](a) {
		ir.View[int32](a)[i] = int32((i*i + 7*i) % 101 % entries)
	}
	return a
}

// Elements are entries times scales of blocks, and the gradient of an entry is the sum of theirs, also over several
// tasks.
func TestSharedWeight(t *testing.T) {
	for _, entries := range []int{2, 16, 100} {
		codebook, indices, s, dw := values[float32](1, int64(entries)), sharedIndices(entries), scales(1001),
			values[float32](2, 60060)
		w := ir.View[float32](results(t, "SharedWeight", 2, []*ir.Array{codebook, indices, s},
			ir.IntAttr("block", 60))[0])
		got := ir.View[float32](results(t, "SharedWeightGrad", 2, []*ir.Array{indices, dw, s},
			ir.IntAttr("block", 60), ir.IntAttr("entries", int64(entries)))[0])
		want := make([]float64, entries)
		for i, k := range ir.View[int32](indices) {
			scale := ir.View[float32](s)[i/60]
			if w[i] != ir.View[float32](codebook)[k]*scale {
				t.Fatalf("element %d is %v", i, w[i])
			}
			want[k] += float64(ir.View[float32](dw)[i]) * float64(scale)
		}
		for k, x := range got {
			if math.Abs(float64(x)-want[k]) > 1e-6*max(1e3, math.Abs(want[k])) {
				t.Errorf("the gradient of entry %d is %v, want %v", k, x, want[k])
			}
		}
	}
}

func TestInvalidSharedWeight(t *testing.T) {
	codebook, indices := values[float32](1, 2), ir.ArrayOf([]int32{0, 1, 2}, 3)
	for _, c := range []struct {
		op, want string
		in       []*ir.Array
		attrs    []*ir.Attr
	}{
		{"SharedWeight", "index 2 is out of range", []*ir.Array{codebook, indices}, nil},
		{"SharedWeight", "attribute block is 0", []*ir.Array{codebook, indices, scales(1)}, nil},
		{"SharedWeight", "want 2 elements", []*ir.Array{codebook, indices, scales(3)},
			[]*ir.Attr{ir.IntAttr("block", 2)}},
		{"SharedWeightGrad", "index 2 is out of range", []*ir.Array{indices, scales(3)},
			[]*ir.Attr{ir.IntAttr("entries", 2)}},
		{"SharedWeightGrad", "want 3 elements", []*ir.Array{indices, scales(4)}, []*ir.Attr{ir.IntAttr("entries", 2)}},
	} {
		_, err := optest.Run(Ops(), optest.Case{Domain: domain, Type: c.op, Version: 1, In: c.in, Attrs: c.attrs,
			Outputs: 1, Workers: 1})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.op, err, c.want)
		}
	}
}
