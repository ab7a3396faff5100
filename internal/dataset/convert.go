package dataset

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/ir"
)

// A conversion converts elements of the data to the model's type: (x*scale - mean)/std, computed in float64, for
// floating-point inputs; other numbers keep their value or are out of range.
type conversion struct {
	from, to  ir.DType
	scale     float64
	mean, std []float64 // one item, or one per channel; nil for 0 and 1
	inner     int64     // contiguous elements of a channel
}

// A rangeError is an element that the model's type cannot represent.
type rangeError struct {
	at    int64
	value string
	to    ir.DType
}

func (m *rangeError) Error() string { return fmt.Sprintf("%s does not fit %s", m.value, m.to) }

// newChange checks that the data's type can be converted to the model's. Only floating-point inputs are scaled.
func newChange(from, to ir.DType, row []int64, o Options) (*conversion, error) {
	if to == ir.Undefined {
		to = from
	}
	c := &conversion{from: from, to: to, scale: 1, inner: 1}
	if to.IsFloat() {
		c.scale, c.mean, c.std = o.Scale, o.Mean, o.Std
	}
	if from != to && (reader[float64](from) == nil || writer[float64](to) == nil) {
		return nil, fmt.Errorf("unsupported conversion from %s to %s; give data of that type", from, to)
	}
	return c, c.channels(row)
}

// channels finds the channel axis for mean and std: the first or else the last axis of a sample, if its size is their
// number of items.
func (c *conversion) channels(row []int64) error {
	n := int64(max(len(c.mean), len(c.std)))
	for _, p := range [][]float64{c.mean, c.std} {
		if len(p) > 1 && int64(len(p)) != n {
			return fmt.Errorf("mean has %d items and std %d: give one, or one per channel", len(c.mean), len(c.std))
		}
	}
	switch {
	case n <= 1:
	case len(row) > 0 && row[0] == n:
		c.inner = elems(row[1:])
	// Elements of a channel are single here, which inner already says.
	case len(row) > 0 && row[len(row)-1] == n:
	default:
		return fmt.Errorf("mean and std have %d items, but a sample is %v: its first or last axis must be channels", n, row)
	}
	return nil
}

func (c *conversion) hasScaling() bool { return c.scale != 1 || c.mean != nil || c.std != nil }

// block is the number of elements converted at a time.
const block = 4096

// apply returns a converted to the model's type, in memory of to, or a itself if nothing changes. An element out of
// range is a *rangeError.
func (c *conversion) apply(a *ir.Array, to *buffers) (*ir.Array, error) {
	if c.from == c.to && !c.hasScaling() {
		return a, nil
	}
	out := to.array(c.to, a.Shape...)
	if !isInteger(c.from) || !isInteger(c.to) {
		return out, convertVia(a, out, c.normalise)
	}
	if c.from == ir.Uint64 {
		for i, v := range ir.View[uint64](a) {
			// Integers are converted via int64, which lacks these.
			if v > math.MaxInt64 {
				return nil, &rangeError{int64(i), fmt.Sprint(v), c.to}
			}
		}
	}
	return out, convertVia[int64](a, out, nil)
}

// normalise scales elements, the first of which is at position at.
func (c *conversion) normalise(x []float64, at int64) {
	if !c.hasScaling() {
		return
	}
	for i := range x {
		// The explicit conversion prevents a fused multiply-add, so that results are the same on every machine.
		v := float64(x[i] * c.scale)
		if c.mean != nil {
			v -= c.mean[c.channel(at+int64(i), c.mean)]
		}
		if c.std != nil {
			v /= c.std[c.channel(at+int64(i), c.std)]
		}
		x[i] = v
	}
}

func (c *conversion) channel(at int64, of []float64) int64 { return at / c.inner % int64(len(of)) }

// convertVia converts a to out via W, which represents every value of both types.
func convertVia[W int64 | float64](a, out *ir.Array, each func([]W, int64)) error {
	read, write := reader[W](a.DType), writer[W](out.DType)
	n := a.Elems()
	wide := make([]W, min(block, n))
	for at := int64(0); at < n; at += block {
		part := wide[:min(block, n-at)]
		read(part, a, at)
		if each != nil {
			each(part, at)
		}
		if bad := write(out, at, part); bad >= 0 {
			return &rangeError{at + int64(bad), fmt.Sprint(part[bad]), out.DType}
		}
	}
	return nil
}

// isInteger reports whether dt is an integer type or bool (0 and 1).
func isInteger(dt ir.DType) bool {
	switch dt {
	case ir.Bool, ir.Int8, ir.Int16, ir.Int32, ir.Int64, ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64:
		return true
	}
	return false
}
