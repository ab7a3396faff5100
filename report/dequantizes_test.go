package report

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A product may lack an input in a malformed model.
func TestDequantizesOfNoInput(t *testing.T) {
	g := ir.NewModel().Graph
	x := g.NewValue("x")
	y := g.Insert(nil, "DequantizeLinear", []*ir.Value{x, x})
	for _, c := range []struct {
		v    *ir.Value
		want bool
	}{{nil, false}, {x, false}, {y, true}} {
		if got := dequantizes(c.v); got != c.want {
			t.Errorf("%v: %v, want %v", c.v, got, c.want)
		}
	}
}
