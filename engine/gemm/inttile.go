package gemm

import "github.com/mcompress/mcompress/kernel"

// intTile is one tile of a product while it is made. The zero point of A is taken off as A is
// widened; that of B afterwards, by the sums of A's rows.
type intTile struct {
	*IntProduct
	depth      int
	rows, cols span

	left   []int16 // A, widened
	sums   []int32 // of the rows of A
	right  []byte  // B, packed
	result []int32 // C from the tile's first element on
	stride int
}

// cut divides the scratch.
func (t *intTile) cut(work []byte, s intSlot) {
	take := func(n int) []byte {
		part := work[:n]
		work = work[n:]
		return part
	}
	t.left = kernel.Words[int16](take(s.left))
	t.sums = kernel.Words[int32](take(s.sums))[:t.rows.len()]
	t.right = take(s.right)
	if t.Finish != nil {
		t.result, t.stride = kernel.Words[int32](take(s.result)), t.cols.len()
	} else {
		t.result, t.stride = t.C[t.rows.from*t.Stride+t.cols.from:], t.Stride
	}
}

func (t *intTile) run() {
	clear(t.sums)
	for ks := range (span{0, t.depth}).blocks(intDepth) {
		k := roundUp(ks.len(), kernel.GemmQuad)
		t.widen(ks, k)
		b, panel := t.panels(ks, k)
		kernel.GemmInt(t.result, t.stride, t.left, k, b, panel, t.rows.len(), t.cols.len(), k, ks.from > 0)
	}
	for i := range t.rows.len() {
		row := t.result[i*t.stride:][:t.cols.len()]
		t.offset(row, t.sums[i])
		if t.Finish != nil {
			t.Finish(t.rows.from+i, t.cols.from, row)
		}
	}
}

// widen makes the block of A, rows of k elements with zeros behind the last.
func (t *intTile) widen(ks span, k int) {
	for i := range t.sums {
		row := t.left[i*k:][:k]
		t.sums[i] += t.widenRow(row[:ks.len()], t.A.from(t.rows.from+i, ks.from), zeroAt(t.AZero, t.rows.from+i))
		clear(row[ks.len():])
	}
}

// widenRow takes the first row of a; if that is not contiguous, by way of a buffer.
func (t *intTile) widenRow(dst []int16, a Matrix[byte], zero int32) (sum int32) {
	if a.Col == 1 {
		return kernel.Widen(dst, a.Data[:len(dst)], t.ASigned, zero)
	}
	var buf [256]byte
	for at := 0; at < len(dst); at += len(buf) {
		part := buf[:min(len(buf), len(dst)-at)]
		for i := range part {
			part[i] = a.Data[(at+i)*a.Col]
		}
		sum += kernel.Widen(dst[at:at+len(part)], part, t.ASigned, zero)
	}
	return sum
}

// panels is the block of B, and the bytes of a panel.
func (t *intTile) panels(ks span, k int) (b []byte, panel int) {
	if t.Packed != nil {
		return t.Packed.block(ks, t.cols.from)
	}
	panel = kernel.GemmPanel * k
	if t.Panels == nil {
		b := t.B.from(ks.from, t.cols.from)
		kernel.PackQuads(t.right, panel, b.Data, b.Row, b.Col, ks.len(), t.cols.len(), flip(t.BSigned))
		return t.right, panel
	}
	for cols := range t.cols.blocks(kernel.GemmPanel) {
		dst := t.right[(cols.from-t.cols.from)*k:][:panel]
		t.Panels(dst, ks.from, ks.to, cols.from, cols.to)
		kernel.PackQuads(dst, panel, dst, kernel.GemmPanel, 1, ks.len(), kernel.GemmPanel, flip(t.BSigned))
	}
	return t.right, panel
}

// flip is what makes an int8 of an element: those of uint8 become 128 less.
func flip(signed bool) byte {
	if signed {
		return 0
	}
	return 0x80
}

// offset takes off what the zero points of B have added to a row.
func (t *intTile) offset(row []int32, sum int32) {
	lift := int32(0) // what int8 elements made of uint8 ones lack
	if !t.signed() {
		lift = 128
	}
	if len(t.BZero) > 1 {
		kernel.LessTimes(row, t.BZero[t.cols.from:t.cols.to], lift, sum)
	} else if zero := zeroAt(t.BZero, 0) - lift; zero != 0 {
		kernel.Less(row, zero*sum)
	}
}

// signed reports whether B is.
func (t *intTile) signed() bool {
	if t.Packed != nil {
		return t.Packed.signed
	}
	return t.BSigned
}
