package prune

import (
	"io"
	"math"
	"sync"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/eigen"
)

// Matrices are row by row, in float64. Products are converted where they are added, so that
// no compiler fuses the two: sums are bit-identical on all platforms.

// times is x, n × k, times y, k × m.
func times(x, y []float64, n, k, m int64) []float64 {
	z := make([]float64, n*m)
	for i := range n {
		row := z[i*m : i*m+m]
		for j := range k {
			addScaled(row, x[i*k+j], y[j*m:j*m+m])
		}
	}
	return z
}

func addScaled(dst []float64, s float64, x []float64) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += float64(s * x[i])
	}
}

// gram is the lower triangle of x, n × k, times its transpose: in blocks of columns, so that
// rows stay in a cache, each element by one worker in the order of the columns.
func gram(x []float64, n, k int64, workers int) []float64 {
	const block = 256
	g := make([]float64, n*n)
	var wg sync.WaitGroup
	for w := range int64(max(1, workers)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for from := int64(0); from < k; from += block {
				to := min(from+block, k)
				for i := w; i < n; i += int64(max(1, workers)) {
					for j := range i + 1 {
						// Blocks in order, and an element by one worker: the sum does not depend on their number.
						g[i*n+j] += eigen.Dot(x[i*k+from:i*k+to], x[j*k+from:j*k+to])
					}
				}
			}
		}()
	}
	wg.Wait()
	return g
}

// transpose is the transpose of x, n × m.
func transpose(x []float64, n, m int64) []float64 {
	z := make([]float64, len(x))
	for i := range n {
		for j := range m {
			z[j*n+i] = x[i*m+j]
		}
	}
	return z
}

func allFinite(x []float64) bool {
	for _, v := range x {
		if math.IsNaN(v - v) {
			return false
		}
	}
	return true
}

// absMax is the largest magnitude in x.
func absMax(x []float64) float64 {
	most := 0.0
	for _, v := range x {
		most = max(most, math.Abs(v))
	}
	return most
}

// readFloats reads all of t's payload.
func readFloats(r io.ReaderAt, t *ir.Tensor) ([]float64, error) {
	x := make([]float64, t.Elems())
	if t.DType == ir.Double {
		return x, ir.ReadFull(r, kernel.Bytes(x), 0)
	}
	f, part := pass.NewFloats(r, t.DType), make([]float32, min(len(x), pass.Block))
	for i := 0; i < len(x); i += len(part) {
		part = part[:min(len(part), len(x)-i)]
		if err := f.Read(part, int64(i)); err != nil {
			return nil, err
		}
		for j, v := range part {
			x[i+j] = float64(v)
		}
	}
	return x, nil
}

// writeFloats writes x as elements of type dt.
func writeFloats(w io.Writer, x []float64, dt ir.DType) error {
	if dt == ir.Double {
		_, err := w.Write(kernel.Bytes(x))
		return err
	}
	narrow, half := make([]float32, min(len(x), pass.Block)), []uint16(nil)
	for len(x) > 0 {
		part := narrow[:min(len(narrow), len(x))]
		for i := range part {
			part[i] = float32(x[i])
		}
		x = x[len(part):]
		b := kernel.Bytes(part)
		if dt != ir.Float {
			half = resize(half, int64(len(part)))
			b = kernel.Bytes(halves(half, part, dt))
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func halves(dst []uint16, x []float32, dt ir.DType) []uint16 {
	if dt == ir.Float16 {
		kernel.F16FromF32(dst, x)
	} else {
		kernel.BF16FromF32(dst, x)
	}
	return dst
}

// decodeFloats are the elements of b of type dt in float32, false for float64.
func decodeFloats(b []byte, dt ir.DType) ([]float32, bool) {
	x := make([]float32, int64(len(b))*8/dt.Bits())
	switch dt {
	case ir.Float:
		copy(x, kernel.Words[float32](b))
	case ir.Float16:
		kernel.F32FromF16(x, kernel.Words[uint16](b))
	case ir.BFloat16:
		kernel.F32FromBF16(x, kernel.Words[uint16](b))
	default:
		return nil, false
	}
	return x, true
}

// encodeFloats are the bytes of x as elements of type dt, rounded to nearest.
func encodeFloats(x []float32, dt ir.DType) []byte {
	if dt == ir.Float {
		return kernel.Bytes(x)
	}
	return kernel.Bytes(halves(make([]uint16, len(x)), x, dt))
}
