package movement

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// checkReduction is an error if attribute reduction is unknown, or not defined for dt.
func checkReduction(n *op.Node, dt ir.DType) error {
	switch reduction := n.Text("reduction", "none"); reduction {
	case "none":
		return nil
	case "add", "mul", "max", "min":
		if err := number.Check(dt); err != nil {
			return fmt.Errorf("reduction %s: %w", reduction, err)
		}
		return nil
	default:
		return fmt.Errorf("reduction is %q, want none, add, mul, max or min", reduction)
	}
}

// A reducer combines consecutive runs of src with those of dst at the positions, in order.
type reducer func(dst, src *ir.Array, places []int64, size int, reduction string)

var reducers = map[ir.DType]reducer{
	ir.Float: reduceRuns[float32], ir.Double: reduceRuns[float64],
	ir.Int8: reduceRuns[int8], ir.Int16: reduceRuns[int16], ir.Int32: reduceRuns[int32], ir.Int64: reduceRuns[int64],
	ir.Uint8: reduceRuns[uint8], ir.Uint16: reduceRuns[uint16], ir.Uint32: reduceRuns[uint32],
	ir.Uint64:   reduceRuns[uint64],
	ir.Float16:  reduceHalves(kernel.F32FromF16, kernel.F16FromF32),
	ir.BFloat16: reduceHalves(kernel.F32FromBF16, kernel.BF16FromF32),
	ir.Bool:     reduceBools,
}

type real interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func reduceRuns[T interface {
	real
	ir.Element
}](dst, src *ir.Array, places []int64, size int, reduction string) {
	d, s := ir.View[T](dst), ir.View[T](src)
	for i, at := range places {
		combine(d[at:int(at)+size], s[i*size:(i+1)*size], reduction)
	}
}

// reduceBools reduces bytes of 0 and 1: the sum of bools is or, their product is and.
func reduceBools(dst, src *ir.Array, places []int64, size int, reduction string) {
	reduceRuns[uint8](dst, src, places, size, map[string]string{"add": "max", "mul": "min", "max": "max",
		"min": "min"}[reduction])
}

// reduceHalves computes in float32 and rounds each sum to 16 bits.
func reduceHalves(widen func([]float32, []uint16), narrow func([]uint16, []float32)) reducer {
	return func(dst, src *ir.Array, places []int64, size int, reduction string) {
		d, s := ir.View[uint16](dst), ir.View[uint16](src)
		a, b := make([]float32, size), make([]float32, size)
		for i, at := range places {
			to := d[at : int(at)+size]
			widen(a, to)
			widen(b, s[i*size:(i+1)*size])
			combine(a, b, reduction)
			narrow(to, a)
		}
	}
}

// combine writes the reduction of each pair to dst. max and min propagate NaN, as in NumPy.
func combine[T real](dst, src []T, reduction string) {
	switch reduction {
	case "add":
		for i, x := range src {
			dst[i] += x
		}
	case "mul":
		for i, x := range src {
			dst[i] *= x
		}
	case "max":
		for i, x := range src {
			dst[i] = max(dst[i], x)
		}
	case "min":
		for i, x := range src {
			dst[i] = min(dst[i], x)
		}
	}
}
