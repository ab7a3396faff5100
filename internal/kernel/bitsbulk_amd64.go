//go:build amd64 && !noasm

package kernel

// decodeBulk dequantizes whole words, and returns the number of elements.
func (q *Quantized) decodeBulk(dst []float32, values []byte, scale, zero []float32) int {
	words := len(dst) / GemmPanel / q.per()
	if !hasAVX2 || words == 0 {
		return 0
	}
	within("values", len(values), words*GemmPanel*4)
	to, from, s, z := &dst[0], &values[0], &scale[0], &zero[0]
	switch {
	case q.Table != nil && q.Bits == 4 && hasAVX512:
		quantizedPanelTable4AVX512(to, from, words, s, q.entries())
	case q.Table != nil && q.Bits == 4:
		quantizedPanelTable4AVX2(to, from, words, s, q.entries())
	case q.Table != nil:
		quantizedPanelTable8AVX2(to, from, words, s, q.entries())
	case q.Bits == 2 && hasAVX512:
		quantizedPanel2AVX512(to, from, words, s, z)
	case q.Bits == 2:
		quantizedPanel2AVX2(to, from, words, s, z)
	case q.Bits == 4 && hasAVX512:
		quantizedPanel4AVX512(to, from, words, s, z)
	case q.Bits == 4:
		quantizedPanel4AVX2(to, from, words, s, z)
	case hasAVX512:
		quantizedPanel8AVX512(to, from, words, s, z)
	default:
		quantizedPanel8AVX2(to, from, words, s, z)
	}
	return words * q.per() * GemmPanel
}

// entries is the table, which has one for each value.
func (q *Quantized) entries() *float32 {
	within("table", len(q.Table), 1<<q.Bits)
	return &q.Table[0]
}

// rowBlocks is the maximum number of blocks of a call, whose zero points are in a buffer.
const rowBlocks = 16

// rowBulk multiplies the whole words of the block of k0, or of whole blocks from there on, and returns the number of
// rows.
func (q *Quantized) rowBulk(sums, a []float32, panel, k0, k1 int) int {
	blocks, rows := 1, min((k0/q.Block+1)*q.Block, k1)-k0
	if k0%q.Block == 0 && rows == q.Block {
		blocks = min((k1-k0)/q.Block, rowBlocks)
	}
	words := rows / q.per()
	if !hasFMA || words == 0 {
		return 0
	}
	if rows%q.per() != 0 {
		blocks = 1
	}
	step := 2 * GemmPanel
	if q.Table != nil && q.Bits == 8 {
		step = GemmPanel
	}
	for i := 0; i < len(sums); i += step {
		q.rowPanels(sums[i:min(i+step, len(sums))], a, panel+i/GemmPanel, k0, blocks, words)
	}
	return blocks * words * q.per()
}

// rowPanels multiplies blocks of words of one panel or two.
func (q *Quantized) rowPanels(sums, a []float32, panel, k0, blocks, words int) {
	block, valuesPanel, scalePanel := k0/q.Block, q.words()*GemmPanel, q.Blocks()*GemmPanel
	last := panel + len(sums)/GemmPanel - 1
	from, scaleAt := (panel*valuesPanel+k0/q.per()*GemmPanel)*4, panel*scalePanel+block*GemmPanel
	within("values", len(q.Values), (last*valuesPanel+(k0/q.per()+blocks*words)*GemmPanel)*4)
	within("scales", len(q.Scales), last*scalePanel+(block+blocks)*GemmPanel)
	to, x, values, scale := &sums[0], &a[0], &q.Values[from], &q.Scales[scaleAt]
	valuesPanel, scalePanel = 4*valuesPanel, 4*scalePanel
	if q.Table != nil {
		switch {
		case q.Bits == 8:
			quantizedRowTable8x16AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, q.entries())
		case last > panel && hasAVX512:
			quantizedRowTable4x32AVX512(to, x, values, valuesPanel, blocks, words, scale, scalePanel, q.entries())
		case last > panel:
			quantizedRowTable4x32AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, q.entries())
		case hasAVX512:
			quantizedRowTable4x16AVX512(to, x, values, valuesPanel, blocks, words, scale, scalePanel, q.entries())
		default:
			quantizedRowTable4x16AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, q.entries())
		}
		return
	}
	if q.Bits == 4 && q.Floats == nil {
		var zeros [GemmPanel]byte
		zero, zeroBlock, zeroPanel := q.zeroBytes(&zeros, panel, block, last)
		switch {
		case last > panel && hasAVX512:
			quantizedRowInt4x32AVX512(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock,
				zeroPanel)
		case last > panel:
			quantizedRowInt4x32AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock,
				zeroPanel)
		case hasAVX512:
			quantizedRowInt4x16AVX512(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock,
				zeroPanel)
		default:
			quantizedRowInt4x16AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock,
				zeroPanel)
		}
		return
	}
	var buffer [2][rowBlocks * GemmPanel]float32
	zero, zeroBlock, zeroPanel := &buffer[0][0], 4*GemmPanel, 4*rowBlocks*GemmPanel
	switch {
	case q.Floats != nil:
		zero, zeroPanel = &q.Floats[scaleAt], scalePanel
	case q.Zeros != nil:
		for i := range last - panel + 1 {
			q.zeros(buffer[i][:], panel+i, block, blocks)
		}
	default:
		zeroBlock, zeroPanel = 0, 0
		q.zeros(buffer[0][:GemmPanel], panel, block, 1)
	}
	q.rowIntegers(len(sums), to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
}

// zeroBytes are the zero points of panels from a block on, in buffer if all are the same, and the distances of blocks
// and panels.
func (q *Quantized) zeroBytes(buffer *[GemmPanel]byte, panel, block, last int) (zero *byte, zeroBlock, zeroPanel int) {
	if q.Zeros == nil {
		for j := range buffer {
			buffer[j] = byte(q.Zero)
		}
		return &buffer[0], 0, 0
	}
	scalePanel := q.Blocks() * GemmPanel
	within("zeros", len(q.Zeros), (last+1)*scalePanel)
	return &q.Zeros[panel*scalePanel+block*GemmPanel], GemmPanel, scalePanel
}

// rowIntegers calls by name, because a call through a function value would move the buffer of zero points to the heap.
func (q *Quantized) rowIntegers(cols int, to, x *float32, values *byte, valuesPanel, blocks, words int,
	scale *float32, scalePanel int, zero *float32, zeroBlock, zeroPanel int) {
	switch (integerRow{q.Bits, cols / GemmPanel, hasAVX512}) {
	case integerRow{2, 1, false}:
		quantizedRow2x16AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{2, 1, true}:
		quantizedRow2x16AVX512(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{2, 2, false}:
		quantizedRow2x32AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{2, 2, true}:
		quantizedRow2x32AVX512(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{4, 1, false}:
		quantizedRow4x16AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{4, 1, true}:
		quantizedRow4x16AVX512(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{4, 2, false}:
		quantizedRow4x32AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{4, 2, true}:
		quantizedRow4x32AVX512(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{8, 1, false}:
		quantizedRow8x16AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{8, 1, true}:
		quantizedRow8x16AVX512(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{8, 2, false}:
		quantizedRow8x32AVX2(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	default:
		quantizedRow8x32AVX512(to, x, values, valuesPanel, blocks, words, scale, scalePanel, zero, zeroBlock, zeroPanel)
	}
}

// An integerRow is a row of integers of some bits and some panels with an assembly function.
type integerRow struct {
	bits, panels int
	wide         bool // in registers of 64 bytes
}

// int8RowBulk reports whether it multiplied a row.
func (q *Quantized) int8RowBulk(sums []float32, r *Int8Rows, i, panel int) bool {
	if !hasAVX2 || r.K == 0 {
		return false
	}
	panels := (len(sums) + GemmPanel - 1) / GemmPanel
	valuesPanel, scalePanel := q.words()*GemmPanel*4, q.Blocks()*GemmPanel
	within("values", len(q.Values), (panel+panels)*valuesPanel)
	within("scales", len(q.Scales), (panel+panels)*scalePanel)
	var zeros [GemmPanel]byte
	zero, zeroBlock, zeroPanel := q.zeroBytes(&zeros, panel, 0, panel+panels-1)
	to, a, aScale, aSum := &sums[0], &r.Values[i*r.K:][:r.K][0], &r.Scales[i*r.blocks():][:r.blocks()][0],
		&r.Sums[i*r.blocks():][:r.blocks()][0]
	values, scale, words := &q.Values[panel*valuesPanel], &q.Scales[panel*scalePanel], r.Block/q.per()
	switch (integerRow{q.Bits, panels, hasVNNI}) { // by name, as in rowIntegers
	case integerRow{2, 1, false}:
		int8Row2x16AVX2(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{2, 1, true}:
		int8Row2x16AVX512(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{2, 2, false}:
		int8Row2x32AVX2(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{2, 2, true}:
		int8Row2x32AVX512(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{4, 1, false}:
		int8Row4x16AVX2(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{4, 1, true}:
		int8Row4x16AVX512(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{4, 2, false}:
		int8Row4x32AVX2(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{4, 2, true}:
		int8Row4x32AVX512(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{8, 1, false}:
		int8Row8x16AVX2(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{8, 1, true}:
		int8Row8x16AVX512(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	case integerRow{8, 2, false}:
		int8Row8x32AVX2(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	default:
		int8Row8x32AVX512(to, a, aScale, aSum, values, valuesPanel, q.Blocks(), words, q.Block/r.Block, scale,
			4*scalePanel, zero, zeroBlock, zeroPanel)
	}
	return true
}
