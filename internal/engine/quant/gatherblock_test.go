package quant

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Rows of 6-bit floats begin inside of bytes: they were read from the wrong ones.
func TestGatherBlockQuantizedRefusesFloatsOf6Bits(t *testing.T) {
	table, index := ir.NewArray(ir.Float6E2M3, 3, 5), ir.ArrayOf([]int64{1}, 1)
	scales := ir.ArrayOf([]float32{1, 1, 1}, 3, 1)
	in := []*ir.Array{table, index, scales}
	if _, err := compute("GatherBlockQuantized", attrs{"block_size": 0}, 1, 1, in); err == nil {
		t.Errorf("no error for %s", table)
	}
	table = ir.NewArray(ir.Float4E2M1, 3, 5)
	must(t, "GatherBlockQuantized", attrs{"block_size": 0}, table, index, scales)
}
