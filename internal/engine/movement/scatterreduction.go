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

// reduce combines consecutive runs of src with those of dst at the positions, in order.
func reduce(dst, src *ir.Array, places []int64, size int, reduction string) {
	switch dst.DType {
	case ir.Float:
		reduceRuns[float32](dst, src, places, size, reduction)
	case ir.Double:
		reduceRuns[float64](dst, src, places, size, reduction)
	case ir.Int8:
		reduceRuns[int8](dst, src, places, size, reduction)
	case ir.Int16:
		reduceRuns[int16](dst, src, places, size, reduction)
	case ir.Int32:
		reduceRuns[int32](dst, src, places, size, reduction)
	case ir.Int64:
		reduceRuns[int64](dst, src, places, size, reduction)
	case ir.Uint8:
		reduceRuns[uint8](dst, src, places, size, reduction)
	case ir.Uint16:
		reduceRuns[uint16](dst, src, places, size, reduction)
	case ir.Uint32:
		reduceRuns[uint32](dst, src, places, size, reduction)
	case ir.Uint64:
		reduceRuns[uint64](dst, src, places, size, reduction)
	case ir.Bool:
		either := map[string]string{"add": "max", "mul": "min", "max": "max", "min": "min"} // a sum of bools is or
		reduceRuns[uint8](dst, src, places, size, either[reduction])
	case ir.Float16:
		reduceHalves(dst, src, places, size, reduction, kernel.F32FromF16, kernel.F16FromF32)
	case ir.BFloat16:
		reduceHalves(dst, src, places, size, reduction, kernel.F32FromBF16, kernel.BF16FromF32)
	}
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

// reduceHalves computes in float32 and rounds each sum, like a sum of halves.
func reduceHalves(dst, src *ir.Array, places []int64, size int, reduction string, widen func([]float32, []uint16), narrow func([]uint16, []float32)) {
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
