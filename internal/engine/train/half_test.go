package train

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/elementwise"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// StoreHalf is Cast with saturation.
func TestStoreHalf(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		to      ir.DType
		largest float32
		beyond  []float32
	}{
		{ir.Float16, 65504, []float32{65520, 1e9, inf}},
		{ir.BFloat16, 0x1.fep127, []float32{math.MaxFloat32, inf}},
	} {
		x := values[float32](1, 3000)
		copy(ir.View[float32](x), []float32{0, c.largest, -c.largest, 1e-7, 1e-30})
		to := ir.IntAttr("to", int64(c.to))
		cast, err := optest.Run(elementwise.Ops(),
			optest.Case{Type: "Cast", Version: 19, In: []*ir.Array{x}, Attrs: []*ir.Attr{to}})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "in range", results(t, "StoreHalf", 1, []*ir.Array{x}, to)[:1], cast)
		wide, err := optest.Run(elementwise.Ops(),
			optest.Case{Type: "Cast", Version: 19, In: cast, Attrs: []*ir.Attr{ir.IntAttr("to", int64(ir.Float))}})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "loaded", results(t, "LoadHalf", 2, cast)[:1], wide)
		for _, v := range c.beyond {
			half := results(t, "StoreHalf", 1, []*ir.Array{optest.Array(v, -v, nan)}, to)[:1]
			got := ir.View[float32](results(t, "LoadHalf", 1, half)[0])
			if got[0] != c.largest || got[1] != -c.largest || got[2] == got[2] {
				t.Errorf("%v, its negative and NaN become %v in %s", v, got, c.to)
			}
		}
	}
}
