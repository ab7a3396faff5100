package movement

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func ranges() []op.Op {
	return []op.Op{{Type: "Range", Since: 11, Shape: rangeShape, Run: runRange}}
}

func rangeShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	var ends [3]*ir.Array
	for i, name := range []string{"start", "limit", "delta"} {
		a, err := op.Arg(in, i, name)
		if err != nil {
			return nil, err
		}
		if err := number.Check(a.DType); err != nil {
			return nil, err
		}
		if ends[i] = a; a.Elems() != 1 || a.DType != ends[0].DType {
			return nil, fmt.Errorf("%s is %s, want one number of the type of start, %s", name, a, ends[0])
		}
	}
	for _, a := range ends {
		if !op.IsKnown(a) {
			return nil, op.ErrUnknown
		}
	}
	n, err := rangeLength(ends)
	if err != nil {
		return nil, err
	}
	return op.One(ends[0].DType, n)
}

// rangeLength is max(ceil((limit-start)/delta), 0).
func rangeLength(ends [3]*ir.Array) (int64, error) {
	if !ends[0].DType.IsFloat() {
		return wholeRange(ends)
	}
	var x [3]float64
	for i, a := range ends {
		number.Read(x[i:i+1], a, 0)
	}
	n := math.Ceil((x[1] - x[0]) / x[2])
	if math.IsNaN(n) || n > math.MaxInt64/256 {
		return 0, fmt.Errorf("invalid range from %v to %v by %v", x[0], x[1], x[2])
	}
	return int64(max(n, 0)), nil
}

func wholeRange(ends [3]*ir.Array) (int64, error) {
	var x [3]int64
	for i, a := range ends {
		v, err := op.Ints(a)
		if err != nil {
			return 0, err
		}
		x[i] = v[0]
	}
	start, limit, delta := x[0], x[1], x[2]
	switch {
	case delta == 0:
		return 0, fmt.Errorf("invalid range from %d to %d by 0", start, limit)
	case delta > 0 && start < limit:
		// As unsigned numbers, as the distance of two int64 may exceed int64.
		return steps(uint64(limit)-uint64(start), uint64(delta)), nil
	case delta < 0 && start > limit:
		return steps(uint64(start)-uint64(limit), -uint64(delta)), nil
	}
	return 0, nil
}

// steps is the number of steps of that size within the distance. The result exceeds the size of any tensor if it does
// not fit into an int64.
func steps(distance, size uint64) int64 { return int64((distance-1)/size) + 1 }

func runRange(c *op.Call) error {
	switch c.Out[0].DType {
	case ir.Float:
		fillRange[float32](c)
	case ir.Double:
		fillRange[float64](c)
	case ir.Int8:
		fillRange[int8](c)
	case ir.Int16:
		fillRange[int16](c)
	case ir.Int32:
		fillRange[int32](c)
	case ir.Int64:
		fillRange[int64](c)
	case ir.Uint8:
		fillRange[uint8](c)
	case ir.Uint16:
		fillRange[uint16](c)
	case ir.Uint32:
		fillRange[uint32](c)
	case ir.Uint64:
		fillRange[uint64](c)
	default:
		fillHalfRange(c)
	}
	return nil
}

func fillRange[T interface {
	real
	ir.Element
}](c *op.Call) {
	start, delta := ir.View[T](c.In[0])[0], ir.View[T](c.In[2])[0]
	for i := range ir.View[T](c.Out[0]) {
		ir.View[T](c.Out[0])[i] = start + T(T(i)*delta) // the conversion prevents a fused multiply-add
	}
}

// fillHalfRange computes in float32, as stash_type specifies.
func fillHalfRange(c *op.Call) {
	var x [2]float64
	number.Read(x[:1], c.In[0], 0)
	number.Read(x[1:], c.In[2], 0)
	start, delta := float32(x[0]), float32(x[1])
	for i := range int(c.Out[0].Elems()) {
		number.Write(c.Out[0], i, []float64{float64(start + float32(float32(i)*delta))})
	}
}
