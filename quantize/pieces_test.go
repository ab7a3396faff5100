package quantize

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Weights above the elements that are read at a time, whose pieces end within a byte, are quantized as others are.
func TestPiecesThatEndWithinAByte(t *testing.T) {
	for _, c := range []struct {
		rows, cols int
		v          variant
		least      float64
	}{
		{121, 3001, variant{WeightInt4{}.Method(), nil}, 20},
		{100, 3001, variant{WeightInt4{}.Method(), nil}, 20},
		{121, 3001, variant{WeightInt2{}.Method(), nil}, 7},
		{126, 2099, variant{WeightInt4{}.Method(), []string{"symmetric"}}, 20},
	} {
		s := newBuilder(t, 13)
		s.output("y", s.node("MatMul",
			[]*ir.Value{s.input("x", 3, int64(c.rows)), s.weight("w", int64(c.rows), int64(c.cols))}), 3, int64(c.cols))
		if r := s.apply(c.v, c.least); changed(r.Result) != 1 {
			t.Errorf("%s: %+v", c.v, r.Report.Ledger)
		}
	}
}

// Tables of lookups of any rank have a scale for each row.
func TestTablesOfHigherRank(t *testing.T) {
	for _, shape := range [][]int64{{50, 4, 32}, {50, 32, 1}, {10, 3, 4, 32}, {6, 2, 3, 4, 32}} {
		for _, v := range []variant{{Float8{}.Method(), nil}, {Float8{}.Method(), []string{"type=e5m2"}}, weights, dynTables,
			{WeightInt4{}.Method(), nil}, {Palette{}.Method(), nil}} {
			s := newBuilder(t, 19)
			ids := s.input("ids", 3)
			ids.Type.Elem = ir.Int64
			s.output("y", s.node("Tanh", []*ir.Value{s.node("Gather", []*ir.Value{s.weight("table", shape...), ids})}),
				append([]int64{3}, shape[1:]...)...)
			s.apply(v, 15)
		}
	}
}
