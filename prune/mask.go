package prune

import (
	"io"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A mask zeroes elements of one tensor: those of magnitude bits below limit, and those equal to it at an index below
// ties. Bits are those of the tensor's type, without the sign; their order is that of the magnitudes.
type mask struct {
	limit uint64
	ties  int64
}

// view is in with the masked elements zeroed.
func (c mask) view(in io.ReaderAt, dt ir.DType) io.ReaderAt {
	size := dt.Bits() / 8
	return &view{in, size, func(b []byte, first int64) error {
		at := min(max(c.ties-first, 0)*size, int64(len(b)))
		zeroBelow(b[:at], dt, c.limit+1)
		zeroBelow(b[at:], dt, c.limit)
		return nil
	}}
}

func zeroBelow(b []byte, dt ir.DType, limit uint64) {
	switch dt.Bits() {
	case 16:
		kernel.ZeroWordsBelow(kernel.Words[uint16](b), uint16(limit))
	case 64:
		kernel.ZeroWordsBelow(kernel.Words[uint64](b), limit)
	default:
		kernel.ZeroBelow(kernel.Words[float32](b), uint32(limit), 0)
	}
}

// maskFromKey converts a threshold key, see keys, into bits of type dt: elements below the key are those below the
// smallest magnitude of dt that is not below it.
func maskFromKey(key uint64, ties int64, dt ir.DType, wide bool) mask {
	lo, hi := uint64(0), infinity(dt)
	for lo < hi {
		mid := lo + (hi-lo)/2
		if keyOf(mid, dt, wide) < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	// No magnitude of this type equals the key: it has no ties.
	if keyOf(lo, dt, wide) != key {
		ties = 0
	}
	return mask{lo, ties}
}

// keyOf is the key of a magnitude of type dt: its bits as a float64 if wide, else as a
// float32. Both are exact, as wide is set where there are float64 tensors.
func keyOf(bits uint64, dt ir.DType, wide bool) uint64 {
	v := number(bits, dt)
	if wide {
		return math.Float64bits(v)
	}
	return uint64(math.Float32bits(float32(v)))
}

// number is the value of bits of type dt.
func number(bits uint64, dt ir.DType) float64 {
	switch dt {
	case ir.Double:
		return math.Float64frombits(bits)
	case ir.BFloat16:
		return float64(math.Float32frombits(uint32(bits) << 16))
	case ir.Float16:
		one := make([]float32, 1)
		kernel.F32FromF16(one, []uint16{uint16(bits)})
		return float64(one[0])
	}
	return float64(math.Float32frombits(uint32(bits)))
}
