package spec

// padColumns is columns of rows values, each padded with zeros to a multiple of unit values.
func padColumns(q []byte, rows, unit int64) []byte {
	wide := ceilDiv(rows, unit) * unit
	if wide == rows {
		return q
	}
	// Zeros after each column: blocks of MatMulNBits are whole.
	out := make([]byte, int64(len(q))/rows*wide)
	for at := out; len(q) > 0; q, at = q[rows:], at[wide:] {
		copy(at, q[:rows])
	}
	return out
}
