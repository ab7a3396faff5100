package movement

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// ScatterElements is packed where it writes floats to a vector of zeros at ascending positions.
func TestPackScatterElements(t *testing.T) {
	none := []*ir.Attr(nil)
	for name, c := range map[string]struct {
		attrs  []*ir.Attr
		data   op.Packed
		shape  []int64
		at     *ir.Array
		packed bool
		want   []int32
	}{
		"ascending":      {none, op.Filled(0), []int64{6}, vec(1, 4), true, []int32{1, 4}},
		"from the end":   {none, op.Filled(0), []int64{6}, vec(1, -1), true, []int32{1, 5}},
		"unordered":      {none, op.Filled(0), []int64{6}, vec(4, 1), false, nil},
		"twice":          {none, op.Filled(0), []int64{6}, vec(4, 4), false, nil},
		"out of range":   {none, op.Filled(0), []int64{6}, vec(4, 6), false, nil},
		"no zeros":       {none, op.Filled(1), []int64{6}, vec(1, 4), false, nil},
		"dense":          {none, nil, []int64{6}, vec(1, 4), false, nil},
		"matrix":         {none, op.Filled(0), []int64{3, 2}, vec(1, 2), false, nil},
		"sum":            {[]*ir.Attr{ir.StringAttr("reduction", "add")}, op.Filled(0), []int64{6}, vec(1, 4), false, nil},
		"unknown values": {none, op.Filled(0), []int64{6}, &ir.Array{DType: ir.Int64, Shape: []int64{2}}, true, nil},
	} {
		n := op.NewNode(ir.OpID{Type: "ScatterElements"}, 18, c.attrs, nil)
		in := []*ir.Array{{DType: ir.Float, Shape: c.shape}, c.at, ir.ArrayOf([]float32{7, 8}, 2)}
		s, ok := packScatterElements(n, in, []op.Packed{c.data, nil, nil}).(*op.Sparse)
		if ok != c.packed || ok && !slices.Equal(s.Positions, c.want) {
			t.Errorf("%s: packed %v %v", name, ok, s)
		}
	}
}
