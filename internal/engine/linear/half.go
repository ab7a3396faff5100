package linear

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

func half(dt ir.DType) bool { return dt == ir.Float16 || dt == ir.BFloat16 }

func floatBytes(a *ir.Array) int64 { return padded(4 * a.Elems()) }

func padded(n int64) int64 { return (n + 63) / 64 * 64 }

// panels widens the parts of b's matrix at, of 16-bit floats, that package gemm requests.
func (o operand) panels(b *ir.Array, at int) gemm.Panels[float32] {
	bits, to32 := ir.View[uint16](b)[at:], widener(b.DType)
	if o.col == 1 {
		return func(dst []float32, k0, k1, n0, n1 int) {
			for k := k0; k < k1; k++ {
				to32(dst[(k-k0)*kernel.GemmPanel:][:n1-n0], bits[k*o.row+n0:][:n1-n0])
			}
		}
	}
	return func(dst []float32, k0, k1, n0, n1 int) {
		for n := n0; n < n1; n++ {
			o.column(dst[n-n0:], bits[k0*o.row+n*o.col:], k1-k0, to32)
		}
	}
}

// column writes count elements of a column of bits to every 16th element of dst.
func (o operand) column(dst []float32, bits []uint16, count int, to32 func([]float32, []uint16)) {
	var halves [256]uint16
	var wide [256]float32
	for from := 0; from < count; from += len(wide) {
		n := min(len(wide), count-from)
		for i := range n {
			halves[i] = bits[(from+i)*o.row]
		}
		to32(wide[:n], halves[:n])
		for i, x := range wide[:n] {
			dst[(from+i)*kernel.GemmPanel] = x
		}
	}
}

func widener(dt ir.DType) func(dst []float32, x []uint16) {
	if dt == ir.Float16 {
		return kernel.F32FromF16
	}
	return kernel.F32FromBF16
}

func widen(dst []float32, a *ir.Array) { widener(a.DType)(dst, ir.View[uint16](a)) }

func narrow(a *ir.Array, x []float32) {
	if a.DType == ir.Float16 {
		kernel.F16FromF32(ir.View[uint16](a), x)
		return
	}
	kernel.BF16FromF32(ir.View[uint16](a), x)
}
