package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// Integers of some bits that Div and Mod unpack from bytes are unpacked by one operator, unless divisors or modulus
// differ.
func TestUnpackedBitsAreFused(t *testing.T) {
	for _, c := range []struct {
		divisors []int32
		modulus  int32
		shape    int64 // of the result
		fused    bool
	}{
		{[]int32{1, 2, 4, 8, 16, 32, 64, 128}, 2, -1, true},
		{[]int32{1, 4, 16, 64}, 4, -1, true},
		{[]int32{1, 16}, 16, -1, true},
		{[]int32{1, 16}, 8, -1, false},
		{[]int32{1, 8}, 16, -1, false},
		{[]int32{1, 16}, 16, 2, false},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			model := func() *ir.Model {
				m := ir.NewModel()
				m.Opsets = []ir.Opset{{Version: 17}}
				b := &builder{m.Graph}
				constant := func(a *ir.Array) *ir.Value {
					return b.AddConst("c", &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)})
				}
				const n = 70_000 // more than constants that are folded before fusion
				x := ir.NewArray(ir.Uint8, n)
				for i := range x.Data {
					x.Data[i] = byte(i * 37)
				}
				column := b.op("Reshape", b.cast(constant(x), ir.Int32), b.ints(-1, 1))
				d := constant(ir.ArrayOf(c.divisors, int64(len(c.divisors))))
				y := b.op("Mod", b.op("Div", column, d), constant(ir.ArrayOf([]int32{c.modulus})))
				shape := []int64{c.shape}
				if c.shape > 0 {
					shape = append(shape, -1)
				}
				b.output(b.op("Add", b.op("Reshape", y, b.ints(shape...)), b.input("x", ir.Int32, "1")))
				return m
			}
			in := map[string]*ir.Array{"x": ir.ArrayOf([]int32{1}, 1)}
			want, _ := runModel(t, model(), in, engine.Options{NoFusion: true})
			for _, workers := range []int{1, 3} {
				limits := memory.Limits{Weights: 1} // constants are not folded
				got, steps := runModel(t, model(), in, engine.Options{Workers: workers, Limits: limits})
				for name, w := range want {
					if !bytes.Equal(got[name].Data, w.Data) {
						t.Errorf("output %q differs", name)
					}
				}
				if slices.Contains(steps, "mcompress.UnpackBits") != c.fused {
					t.Errorf("steps: %v", steps)
				}
			}
		})
	}
}
