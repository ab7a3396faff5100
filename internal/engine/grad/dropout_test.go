package grad

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestDropoutGradient(t *testing.T) {
	step := ir.ArrayOf([]int64{3, 1}, 2)
	checkAll(t, []probe{
		{op: ir.OpID{Domain: own, Type: "SeededDropout"}, in: []*ir.Array{values(1, 4, 5), step}},
		{op: ir.OpID{Domain: own, Type: "SeededDropout"}, in: []*ir.Array{values(1, 40), step},
			attrs: []*ir.Attr{{Name: "ratio", Type: ir.AttrFloat, F: 0.2}, ir.IntAttr("seed", 7)}},
	})
}
