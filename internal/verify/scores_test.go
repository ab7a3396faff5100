package verify

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Two models with the same tied scores agree, and a tie that one of them breaks in favor of a later class does not.
func TestTiesInAgreement(t *testing.T) {
	tied, first, later := ir.ArrayOf([]float32{2, 2, 1}, 1, 3), ir.ArrayOf([]float32{3, 2, 1}, 1, 3), ir.ArrayOf([]float32{2, 3, 1}, 1, 3)
	for _, c := range []struct {
		got  *ir.Array
		want int64
	}{{tied, 1}, {first, 1}, {later, 0}} {
		var agree tally
		if agree.compare(tied, c.got); agree != (tally{yes: c.want, all: 1}) {
			t.Errorf("%v: %+v", ir.View[float32](c.got), agree)
		}
	}
}
