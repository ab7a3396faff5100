package spmm

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A QuantizedMatrix is a K×N matrix of int8 or uint8 with a zero point for each column. Element (k, n) is at k·Row +
// n·Col.
type QuantizedMatrix struct {
	Data     []byte
	Signed   bool
	K, N     int
	Row, Col int
	Zeros    []int32 // of each column
}

// IsSparse reports whether so many elements are zero points that products are faster than dense ones by cost model d.
func (m *QuantizedMatrix) IsSparse(d Density) bool {
	if len(m.Data) != m.K*m.N || m.Row != 1 && m.Col != 1 {
		return false
	}
	zero := !slices.ContainsFunc(m.Zeros, func(z int32) bool { return z != 0 })
	return d.Counts(len(m.Data), 1, func(buf []byte, from, to int) []byte {
		if zero {
			return m.Data[from:to]
		}
		for i := from; i < to; i++ {
			column := i % m.N
			if m.Row == 1 {
				column = i / m.K
			}
			// Zero where the value is the zero point, whatever the signs.
			buf[i-from] = m.Data[i] ^ byte(m.Zeros[column])
		}
		return buf[:to-from]
	})
}

// Pack is the transposed matrix, times a scale for each column.
func (m *QuantizedMatrix) Pack(pool gemm.Pool, scales []float32) *Matrix {
	source, v := m.Source(scales)
	return Pack(pool, m.N, m.K, source, v)
}

// Source lists the elements of the transposed matrix. Values minus zero points are int8, or if these are not in the
// middle of the range, float16, which represents them.
func (m *QuantizedMatrix) Source(scales []float32) (Source, kernel.SparseValues) {
	v, middle := kernel.SparseValues{Type: kernel.SparseInt8, Scales: scales}, int32(128)
	if m.Signed {
		middle = 0
	}
	for _, z := range m.Zeros {
		// Differences from another zero point exceed int8. float16 represents them, and costs a byte more.
		if z != middle {
			v.Type = kernel.SparseHalf
		}
	}
	elements := gemm.Matrix[byte]{Data: m.Data, Row: m.Col, Col: m.Row}
	return differences(elements, m.K, m.Signed, m.Zeros), v
}
