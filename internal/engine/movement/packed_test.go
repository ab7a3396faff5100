package movement

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
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
		"ascending": {none, packedweight.Filled(0), []int64{6}, vec(1, 4), true, []int32{1, 4}},
		"int32":     {none, packedweight.Filled(0), []int64{6}, ir.ArrayOf([]int32{1, 4}, 2), true, []int32{1, 4}},
		"int32 at end": {none, packedweight.Filled(0), []int64{6}, ir.ArrayOf([]int32{1, -1}, 2), true,
			[]int32{1, 5}},
		"int32 outside": {none, packedweight.Filled(0), []int64{6}, ir.ArrayOf([]int32{1, 6}, 2), false, nil},
		"from the end":  {none, packedweight.Filled(0), []int64{6}, vec(1, -1), true, []int32{1, 5}},
		"unordered":     {none, packedweight.Filled(0), []int64{6}, vec(4, 1), false, nil},
		"twice":         {none, packedweight.Filled(0), []int64{6}, vec(4, 4), false, nil},
		"out of range":  {none, packedweight.Filled(0), []int64{6}, vec(4, 6), false, nil},
		"no zeros":      {none, packedweight.Filled(1), []int64{6}, vec(1, 4), false, nil},
		"dense":         {none, nil, []int64{6}, vec(1, 4), false, nil},
		"matrix":        {none, packedweight.Filled(0), []int64{3, 2}, vec(1, 2), false, nil},
		"sum": {[]*ir.Attr{ir.StringAttr("reduction", "add")}, packedweight.Filled(0), []int64{6},
			vec(1, 4), false, nil},
		"unknown values": {none, packedweight.Filled(0), []int64{6}, &ir.Array{DType: ir.Int64, Shape: []int64{2}},
			true, nil},
	} {
		n := op.NewNode(ir.OpID{Type: "ScatterElements"}, 18, c.attrs, nil)
		in := []*ir.Array{{DType: ir.Float, Shape: c.shape}, c.at, ir.ArrayOf([]float32{7, 8}, 2)}
		s, ok := packScatterElements(n, in, []op.Packed{c.data, nil, nil}).(*packedweight.Sparse)
		if ok != c.packed || ok && !slices.Equal(s.Positions, c.want) {
			t.Errorf("%s: packed %v %v", name, ok, s)
		}
	}
}

// Gather is packed as a sparse vector where it reads the first entry, a zero, almost everywhere.
func TestPackGatherOfMostlyZeros(t *testing.T) {
	const n, entries = 1 << 15, 300
	values := make([]float32, entries)
	for i := range values {
		values[i] = float32(i)
	}
	table := ir.ArrayOf(values, entries)
	at := func(changed int, to int64) (*ir.Array, *ir.Array) {
		wide, narrow := make([]int64, n), make([]int32, n)
		for i := range changed {
			wide[i*5+3], narrow[i*5+3] = to, int32(to)
		}
		return ir.ArrayOf(wide, n), ir.ArrayOf(narrow, n)
	}
	for name, c := range map[string]struct {
		changed int
		to      int64
		want    float32 // 0 if it is not sparse
	}{
		"sparse": {40, 7, 7}, "from the end": {40, -1, entries - 1}, "out of range": {40, entries, 0},
		"half": {0, 0, 0},
	} {
		wide, narrow := at(c.changed, c.to)
		for _, a := range []*ir.Array{wide, narrow} {
			if name == "half" {
				for i := range n / 2 {
					copy(a.Data[i*int(a.DType.Bits()/8):], []byte{1})
				}
			}
			s, ok := packGather(nil, []*ir.Array{table, a}, make([]op.Packed, 2)).(*packedweight.Sparse)
			if ok != (c.want != 0) {
				t.Errorf("%s of %s: sparse is %v", name, a.DType, ok)
				continue
			}
			if ok && (len(s.Positions) != c.changed || s.Positions[1] != 8 || s.Values[1] != c.want) {
				t.Errorf("%s of %s: %d positions, %d is %v", name, a.DType, len(s.Positions), s.Positions[1],
					s.Values[1])
			}
		}
	}
}
