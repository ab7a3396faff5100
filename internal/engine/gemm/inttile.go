package gemm

import (
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
)

// intTile is one tile of a product during its computation. The contribution of the zero points is subtracted
// afterwards, using the sums of A's rows and B's columns, unless the kernel subtracts A's zero points itself.
type intTile struct {
	*IntProduct
	depth      int
	rows, cols span

	left    []byte  // A in the kernel's layout
	rowSums []int32 // of A minus its zero points
	zeros   []int32 // of A's rows, in left
	right   []byte  // B, packed
	colSums []int32 // of B, as int8
	starts  []int32 // scratch memory of a prepacked B, for start
	started bool    // the zero point of A is subtracted
	result  []int32 // C, starting at the tile's first element
	stride  int
}

// cut divides the scratch memory.
func (t *intTile) cut(work []byte, s intSlot) {
	take := func(n int) []byte {
		part := work[:n]
		work = work[n:]
		return part
	}
	t.left = take(s.left)
	rows := kernel.Words[int32](take(s.rows))
	t.rowSums, t.zeros = rows[:t.rows.len()], rows[len(rows)-t.rows.len():]
	t.right, t.colSums = take(s.right), kernel.Words[int32](take(s.cols))[:t.cols.len()]
	if t.Packed != nil {
		t.colSums, t.starts = t.Packed.sums[t.cols.from:t.cols.to], t.colSums
	} else {
		clear(t.colSums)
	}
	if t.finishes() {
		t.result, t.stride = kernel.Words[int32](take(s.result)), t.cols.len()
	} else {
		t.result, t.stride = t.C[t.rows.from*t.Stride+t.cols.from:], t.Stride
	}
}

func (t *intTile) run() {
	switch paired := t.Packed != nil && t.Packed.pairs != nil; {
	case paired && t.requantizesPairs():
		t.requantizePairs()
		return
	case paired:
		t.multiplyPairs()
	default:
		t.multiply()
	}
	rows, cols := t.rows.len(), t.cols.len()
	// After all of k: what the zero points contribute depends on sums over all of it.
	for i := range t.offsets() {
		t.offset(t.result[i*t.stride:][:cols], i)
	}
	switch {
	case t.Finish != nil:
		t.Finish(t.rows.from, t.cols.from, cols, t.result[:rows*cols])
	case t.Quantized.Data != nil:
		y := t.Quantized.from(t.rows.from, t.cols.from)
		kernel.Requantize(y.Data, y.Row, t.result[:rows*cols], t.Requantization.Part(t.cols.from, t.cols.to))
	}
}

func (t *intTile) multiply() {
	clear(t.rowSums)
	var first []int32
	// The first block starts with the row of start, for all rows (stride 0), and each later one with the sums of the
	// one before.
	for ks := range (span{0, t.depth}).blocks(intDepth) {
		k, stride := roundUp(ks.len(), kernel.GemmQuad), 0
		a, row := t.rowsOfA(ks, k)
		b, panel := t.panels(ks, k)
		if ks.from == 0 {
			first = t.start()
		} else {
			first, stride = t.result, t.stride
		}
		kernel.GemmInt(t.result, t.stride, first, stride, a, row, b, panel, t.rows.len(), t.cols.len(), k)
	}
	if t.started {
		clear(t.zeros)
	}
}

// start is the sums that all rows start with: minus the contribution of A's zero point, if that is the same for all
// rows and the sums of B's columns are known, else nil.
func (t *intTile) start() []int32 {
	if t.started = t.Packed != nil && len(t.AZero) == 1 && t.zeros[0] != 0; !t.started {
		return nil
	}
	clear(t.starts)
	kernel.LessTimes(t.starts, t.colSums, 0, t.zeros[0])
	return t.starts
}

// rowsOfA is the block of A, rows of k elements, and the distance of rows: where it is, or a copy that is padded with
// zeros.
func (t *intTile) rowsOfA(ks span, k int) (a []byte, row int) {
	if t.inPlace(ks) {
		t.eachZero(func(rows span, zero int32) { fill(t.zeros[rows.from:rows.to], zero) })
		return t.A.from(t.rows.from, ks.from).Data, t.A.Row
	}
	// Where the kernel reads int16, bytes to be widened are in the second half of their row, so that widening them
	// from the start on overwrites none that is still to be read.
	n, row, width := ks.len(), intRow(k), kernel.GemmIntWidth()
	src := t.source(ks, row, n*(width-1))
	t.eachZero(func(rows span, zero int32) {
		left := kernel.GemmIntRows(t.left[rows.from*row:], row, src.from(rows.from, 0).Data, src.Row, n, t.ASigned,
			zero, t.rowSums[rows.from:rows.to])
		fill(t.zeros[rows.from:rows.to], left)
	})
	t.pad(row, n*width, k*width)
	return t.left, row
}

// inPlace reports whether the block of A has the form of the kernel, and the sums of its rows are not needed.
func (t *intTile) inPlace(ks span) bool {
	return kernel.GemmIntWidth() == 1 && t.Patches == nil && t.A.Col == 1 && !t.ASigned &&
		ks.len()%kernel.GemmQuad == 0 &&
		len(t.BZero) == 0 && t.signed()
}

func fill(to []int32, v int32) {
	for i := range to {
		to[i] = v
	}
}

// source is the block of A. Elements that are not contiguous are first copied into rows of left, row bytes apart, from
// byte at on.
func (t *intTile) source(ks span, row, at int) Matrix[byte] {
	if t.Patches == nil && t.A.Col == 1 {
		return t.A.from(t.rows.from, ks.from)
	}
	src := Rows(t.left[at:], row)
	for i := range t.rowSums {
		t.gather(src.Data[i*row:][:ks.len()], t.rows.from+i, ks.from)
	}
	return src
}

// eachZero calls f with rows of the tile that have the same zero point.
func (t *intTile) eachZero(f func(rows span, zero int32)) {
	step := len(t.rowSums)
	if len(t.AZero) > 1 {
		step = 1
	}
	for rows := range (span{0, len(t.rowSums)}).blocks(step) {
		f(rows, zeroAt(t.AZero, t.rows.from+rows.from))
	}
}

// pad clears bytes of the rows of left.
func (t *intTile) pad(row, from, to int) {
	if from == to {
		return
	}
	for i := range t.rowSums {
		clear(t.left[i*row:][from:to])
	}
}

// gather copies elements of row i of A from element from on.
func (t *intTile) gather(dst []byte, i, from int) {
	if t.Patches != nil {
		t.Patches(dst, i, from)
		return
	}
	src := t.A.from(i, from)
	for j := range dst {
		dst[j] = src.Data[j*src.Col]
	}
}

// panels is the block of B, and the size of a panel in bytes.
func (t *intTile) panels(ks span, k int) (b []byte, panel int) {
	if t.Packed != nil {
		return t.Packed.block(ks, t.cols.from)
	}
	panel = kernel.GemmPanel * k
	if t.Panels == nil {
		b := t.B.from(ks.from, t.cols.from)
		kernel.PackQuads(t.right, panel, b.Data, b.Row, b.Col, ks.len(), t.cols.len(), flip(t.BSigned))
	} else {
		t.fill(ks, k)
	}
	// Where A is widened, its zero point is subtracted on the way, and the sums of B's columns are not needed.
	if kernel.GemmIntWidth() == 1 {
		kernel.QuadSums(t.colSums, t.right, panel, k)
	}
	return t.right, panel
}

// fill calls Panels, and packs each panel in place.
func (t *intTile) fill(ks span, k int) {
	panel := kernel.GemmPanel * k
	for cols := range t.cols.blocks(kernel.GemmPanel) {
		dst := t.right[(cols.from-t.cols.from)*k:][:panel]
		t.Panels(dst, ks.from, ks.to, cols.from, cols.to)
		kernel.PackQuads(dst, panel, dst, kernel.GemmPanel, 1, ks.len(), kernel.GemmPanel, flip(t.BSigned))
	}
}

// flip converts elements to int8: those of uint8 minus 128.
func flip(signed bool) byte {
	if signed {
		return 0
	}
	return 0x80
}

// offsets is the number of rows that offset has an effect on: none if there are no zero points left.
func (t *intTile) offsets() int {
	// uint8 of B is stored minus 128, so that it has a zero point to correct in any case.
	if len(t.BZero) == 0 && t.signed() && !slices.ContainsFunc(t.zeros[:t.rows.len()],
		func(z int32) bool { return z != 0 }) {
		return 0
	}
	return t.rows.len()
}

// offset subtracts the contribution of the zero points from row i of the tile: (A-za)·(B-zb) = A·B - za·(sum of B's
// column) - zb·(sum of A's row minus za).
func (t *intTile) offset(row []int32, i int) {
	if zero := t.zeros[i]; zero != 0 {
		kernel.LessTimes(row, t.colSums, 0, zero)
	}
	lift := int32(0) // offset of uint8 elements converted to int8
	if !t.signed() {
		lift = 128
	}
	if len(t.BZero) > 1 {
		kernel.LessTimes(row, t.BZero[t.cols.from:t.cols.to], lift, t.rowSums[i])
	} else if zero := zeroAt(t.BZero, 0) - lift; zero != 0 {
		kernel.Less(row, zero*t.rowSums[i])
	}
}

// signed reports whether B is.
func (t *intTile) signed() bool {
	if t.Packed != nil {
		return t.Packed.signed
	}
	return t.BSigned
}
