package spec

import "github.com/mcompress/mcompress/internal/kernel"

// packColumns packs columns of rows values, each padded to a multiple of unit values that fills whole bytes. It may overwrite q.
func (b *BlockLayout) packColumns(q []byte, rows, unit int64) []byte {
	wide := ceilDiv(rows, unit) * unit
	if wide == rows {
		return b.pack(q, q, b.Bits)
	}
	column, n := make([]byte, wide), int64(kernel.Packed(int(wide), b.Bits))
	out := make([]byte, int64(len(q))/rows*n)
	for at := out; len(q) > 0; q, at = q[rows:], at[n:] {
		copy(column, q[:rows])
		kernel.Pack(at[:n], column, b.Bits)
	}
	return out
}
