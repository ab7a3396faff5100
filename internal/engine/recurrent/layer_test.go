package recurrent_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/recurrent"
	"github.com/mcompress/mcompress/ir"
)

// Directions that are computed at the same time have scratch memory of their own.
func TestDirectionsAtTheSameTime(t *testing.T) {
	const steps, sequences, input, hidden = 300, 3, 5, 40
	waves := func(shape ...int64) *ir.Array {
		a := ir.NewArray(ir.Float, shape...)
		for i := range ir.View[float32](a) {
			ir.View[float32](a)[i] = float32(math.Sin(float64(i + len(shape))))
		}
		return a
	}
	for kind, gates := range map[string]int64{"RNN": 1, "GRU": 3, "LSTM": 4} {
		c := optest.Case{Type: kind, Version: 22, Outputs: 2,
			Attrs: []*ir.Attr{ir.IntAttr("hidden_size", hidden), ir.StringAttr("direction", "bidirectional")}}
		c.In = []*ir.Array{waves(steps, sequences, input), waves(2, gates*hidden, input),
			waves(2, gates*hidden, hidden), waves(2, 2*gates*hidden)}
		var first []*ir.Array
		for _, c.Workers = range []int{1, 2, 5} {
			got, err := optest.Run(recurrent.Ops(), c)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			}
			for i := range got {
				if !bytes.Equal(got[i].Data, first[i].Data) {
					t.Errorf("%s, output %d: %d workers are not bit-identical to 1", kind, i, c.Workers)
				}
			}
		}
	}
}
