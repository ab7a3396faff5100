package elementwise

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// parse casts strings to numbers, through float64, or through integers for integer types, whose last digits a float64
// may not represent.
func parse(c *op.Call, dst, src *ir.Array) error {
	via := ir.NewArray(ir.Double, src.Shape...)
	if block.Ints.Has(dst.DType) {
		via = ir.NewArray(ir.Int64, src.Shape...)
	}
	for i, s := range src.Text {
		if err := parseOne(via, i, strings.TrimSpace(s)); err != nil {
			return fmt.Errorf("element %d is %q, which is not a number", i, s)
		}
	}
	convert(c, dst, via)
	return nil
}

func parseOne(dst *ir.Array, i int, s string) error {
	if dst.DType == ir.Int64 {
		if v, err := strconv.ParseInt(s, 10, 64); err == nil {
			ir.View[int64](dst)[i] = v
			return nil
		}
		// Above the largest int64 it is a uint64, whose bits the conversion to its type keeps.
		if v, err := strconv.ParseUint(s, 10, 64); err == nil {
			ir.View[int64](dst)[i] = int64(v)
			return nil
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	// Numbers beyond the range become infinite.
	if err != nil && !math.IsInf(v, 0) {
		return err
	}
	if dst.DType == ir.Int64 {
		ir.View[int64](dst)[i] = truncate64(v)
	} else {
		ir.View[float64](dst)[i] = v
	}
	return nil
}

// format casts numbers to strings: the shortest decimal that parses to the same number, with an exponent only for very
// large or small ones.
func format(c *op.Call, dst, src *ir.Array) {
	switch dt := src.DType; {
	case dt == ir.Uint64:
		for i, v := range ir.View[uint64](src) {
			dst.Text[i] = strconv.FormatUint(v, 10)
		}
	case block.Ints.Has(dt) || dt == ir.Bool || narrow.IsInt(dt):
		wide := ir.NewArray(ir.Int64, src.Shape...)
		convert(c, wide, src)
		for i, v := range ir.View[int64](wide) {
			dst.Text[i] = strconv.FormatInt(v, 10)
		}
	default:
		wide := ir.NewArray(ir.Double, src.Shape...)
		convert(c, wide, src)
		digits := 32
		if dt == ir.Double {
			digits = 64
		}
		for i, v := range ir.View[float64](wide) {
			dst.Text[i] = decimal(v, digits)
		}
	}
}

// decimal writes Inf and NaN with the words of the specification.
func decimal(v float64, bits int) string {
	switch a := math.Abs(v); {
	case v != v:
		return "NaN"
	case math.IsInf(v, 1):
		return "INF"
	case math.IsInf(v, -1):
		return "-INF"
	case a != 0 && (a < 1e-4 || a >= 1e16):
		return strconv.FormatFloat(v, 'e', -1, bits)
	}
	return strconv.FormatFloat(v, 'f', -1, bits)
}
