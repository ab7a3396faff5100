package linear

import (
	"bytes"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Constant weights with enough zeros are multiplied as a sparse matrix, bit-identically: at most 1.15 times the bytes
// of values and columns.
func TestSparseWeightsAreBitIdentical(t *testing.T) {
	const k, n = 300, 200
	for dt, size := range map[ir.DType]int64{ir.Float: 5, ir.Float16: 3} {
		for _, m := range []int64{1, 40} {
			a, b, nonzeros := steps(dt, m, k), steps(dt, k, n), int64(0)
			elem := int(dt.Bits() / 8)
			for at := range k * n {
				if at%6 > 0 {
					clear(b.Data[at*elem:][:elem])
				} else if at%7 != 3 {
					nonzeros++
				}
			}
			c := call{op: "MatMul", in: []*ir.Array{a, b}, workers: 2}
			made, err := prepareMatMul(c.node().Node(), []*ir.Array{nil, b}, op.NewPool(1))
			if err != nil || made == nil || float64(made.Bytes) > 1.15*float64(size*nonzeros) {
				t.Errorf("%s: packed %+v, %v, for %d elements", dt, made, err, nonzeros)
			}
			want, err := c.run()
			if err != nil {
				t.Fatal(err)
			}
			c.consts = []int{1}
			if got, err := c.run(); err != nil || !bytes.Equal(got[0].Data, want[0].Data) {
				t.Errorf("%s, %d rows: not bit-identical to the dense product: %v", dt, m, err)
			}
		}
	}
}
