package kernel

import (
	"encoding/binary"
	"fmt"
)

// Quantized is a K×N matrix of quantized values: element (k, n) is (value - zero)·scale, or an entry of a table times
// scale, rounded after each step. It is stored in panels of 16 columns, each a sequence of rows of 16 words of 32 bits:
// a word is consecutive rows of a column, the first one in its lowest bits.
type Quantized struct {
	K, N   int
	Bits   int // of a value: 2, 4 or 8; 4 or 8 with a table
	Block  int // block size: rows of one scale: whole words, or at least K
	Values []byte
	Scales []float32 // by panel, block of rows and column of the panel
	Zeros  []byte    // zero points, likewise; nil if all are Zero
	Floats []float32 // instead of Zeros, likewise
	Zero   float32
	Table  []float32 // 16 or 256 entries; without zero points
}

// ValueBytes and BlockValues are the sizes of Values and, in elements, of Scales and Zeros.
func (q *Quantized) ValueBytes() int { return q.Panels() * q.words() * GemmPanel * 4 }

// BlockValues is the number of scales.
func (q *Quantized) BlockValues() int { return q.Panels() * q.Blocks() * GemmPanel }

// Blocks is the number of scales of a column.
func (q *Quantized) Blocks() int { return (q.K + q.Block - 1) / q.Block }

// Panels is the number of panels.
func (q *Quantized) Panels() int { return (q.N + GemmPanel - 1) / GemmPanel }

// per is the number of values in a word, words the number of words of a column.
func (q *Quantized) per() int { return 32 / q.Bits }

func (q *Quantized) words() int { return (q.K + q.per() - 1) / q.per() }

// blockAt is the place in Scales of a column's block.
func (q *Quantized) blockAt(n, block int) int {
	return (n/GemmPanel*q.Blocks()+block)*GemmPanel + n%GemmPanel
}

// Fits reports whether q can be stored with values of its bits and in its blocks.
func (q *Quantized) Fits() bool {
	return (q.Bits == 2 || q.Bits == 4 || q.Bits == 8) && q.Block > 0 && (q.Block%q.per() == 0 || q.Block >= q.K)
}

// PackColumns stores the values of a panel: those of column n are consecutive in src, from value n·stride on. flip is
// added to each, without carry.
func (q *Quantized) PackColumns(panel int, src []byte, stride int, flip byte) {
	to := q.Values[panel*q.words()*GemmPanel*4:][:q.words()*GemmPanel*4]
	mask := q.repeated(flip)
	for col := range GemmPanel {
		n := panel*GemmPanel + col
		for w := range q.words() {
			word := uint32(0)
			// Columns after the last one are 0: their products are computed, and not stored.
			if n < q.N {
				word = bitsAt(src, (n*stride+w*q.per())*q.Bits, min(q.per(), q.K-w*q.per())*q.Bits) ^ mask
			}
			binary.LittleEndian.PutUint32(to[(w*GemmPanel+col)*4:], word)
		}
	}
}

// PackRows stores the values of a panel: those of row k are consecutive in src, from value k·stride on. flip is that of
// PackColumns.
func (q *Quantized) PackRows(panel int, src []byte, stride int, flip byte) {
	to := q.Values[panel*q.words()*GemmPanel*4:][:q.words()*GemmPanel*4]
	mask, cols, per := q.repeated(flip), min(GemmPanel, q.N-panel*GemmPanel), q.per()
	for w := range q.words() {
		// Words of rows are transposed as squares of values, as bits of one column are in as many words as there are
		// rows in one.
		for col := 0; col < GemmPanel; col += per {
			var tile [GemmPanel]uint32
			for j := 0; j < min(per, q.K-w*per) && col < cols; j++ {
				tile[j] = bitsAt(src, ((w*per+j)*stride+panel*GemmPanel+col)*q.Bits, min(per, cols-col)*q.Bits)
			}
			transposeBits(tile[:per], q.Bits)
			for j, word := range tile[:per] {
				binary.LittleEndian.PutUint32(to[(w*GemmPanel+col+j)*4:], word^mask)
			}
		}
	}
}

// transposeBits transposes a square matrix whose rows are words of values of some bits: it swaps quadrants of a half, a
// quarter and so on of its size.
func transposeBits(rows []uint32, bits int) {
	for half := len(rows) / 2; half > 0; half /= 2 {
		width := half * bits
		low := ^uint32(0) / (1<<width + 1) // the lower width bits of each 2·width
		for i := range rows {
			if i&half != 0 {
				continue
			}
			swap := (rows[i]>>width ^ rows[i+half]) & low
			rows[i+half] ^= swap
			rows[i] ^= swap << width
		}
	}
}

// repeated is a word of equal values.
func (q *Quantized) repeated(value byte) (word uint32) {
	for j := 0; j < 32; j += q.Bits {
		word |= uint32(value) << j
	}
	return word
}

// bitsAt are n bits of src, at most 32, from bit at on.
func bitsAt(src []byte, at, n int) uint32 {
	if n == 32 && at%8 == 0 {
		return binary.LittleEndian.Uint32(src[at/8:])
	}
	// Up to 32 bits at any position are in five bytes.
	var word uint64
	for i, b := range src[at/8 : (at+n+7)/8] {
		word |= uint64(b) << (8 * i)
	}
	return uint32(word >> (at % 8) & (1<<n - 1))
}

// SetBlocks writes values of blocks of columns, such as Scales, where of returns them.
func SetBlocks[T byte | float32](q *Quantized, dst []T, of func(n, block int) T) {
	clear(dst) // also the columns after the last one
	for n := range q.N {
		for block := range q.Blocks() {
			dst[q.blockAt(n, block)] = of(n, block)
		}
	}
}

// Decode writes rows k0 to k1 of a panel, 16 elements each. k0 is the first row of a word.
func (q *Quantized) Decode(dst []float32, panel, k0, k1 int) {
	q.check(k0, k1)
	var zeros [GemmPanel]float32
	for k0 < k1 {
		block := k0 / q.Block
		end := min((block+1)*q.Block, k1)
		scale, zero := q.Scales[q.blockAt(panel*GemmPanel, block):][:GemmPanel], q.zeros(zeros[:], panel, block, 1)
		values, n := q.Values[(panel*q.words()+k0/q.per())*GemmPanel*4:], (end-k0)*GemmPanel
		// Block by block, as scale and zero point of 16 columns are in registers.
		done := q.decodeBulk(dst[:n], values, scale, zero)
		q.decodeGo(dst[done:n], values[done*q.Bits/8:], scale, zero)
		dst, k0 = dst[n:], end
	}
}

// check panics unless rows from k0 on begin with a word.
func (q *Quantized) check(k0, k1 int) {
	if k0%q.per() != 0 || k0 < 0 || k1 > q.K {
		panic(fmt.Sprintf("kernel: rows %d to %d of %d are not words of %d values", k0, k1, q.K, q.per()))
	}
}

// zeros are the zero points of some blocks of a panel.
func (q *Quantized) zeros(dst []float32, panel, block, blocks int) []float32 {
	at := q.blockAt(panel*GemmPanel, block)
	switch {
	case q.Floats != nil:
		return q.Floats[at:][:blocks*GemmPanel]
	case q.Zeros != nil:
		Dequantize(dst[:blocks*GemmPanel], q.Zeros[at:][:blocks*GemmPanel], false, 1, 0)
	default:
		for i := range dst {
			dst[i] = q.Zero
		}
	}
	return dst
}

// decodeGo dequantizes rows of words of one block.
func (q *Quantized) decodeGo(dst []float32, values []byte, scale, zero []float32) {
	for i := range dst {
		row, col := i/GemmPanel, i%GemmPanel
		word := binary.LittleEndian.Uint32(values[(row/q.per()*GemmPanel+col)*4:])
		// The zero point is subtracted, then the product rounded, as DequantizeLinear does. A scale after the sum of a
		// block would save half of the instructions, but a token alone would differ from the same token in a batch.
		dst[i] = q.number(word>>(row%q.per()*q.Bits), zero[col]) * scale[col]
	}
}

// number is the number of a value in the lowest bits of a word, before the scale.
func (q *Quantized) number(word uint32, zero float32) float32 {
	value := word & (1<<q.Bits - 1)
	if q.Table != nil {
		return q.Table[value]
	}
	return float32(value) - zero
}

// At is one element.
func (q *Quantized) At(k, n int) float32 {
	var zeros [GemmPanel]float32
	block := k / q.Block
	word := binary.LittleEndian.Uint32(q.Values[((n/GemmPanel*q.words()+k/q.per())*GemmPanel+n%GemmPanel)*4:])
	zero := q.zeros(zeros[:], n/GemmPanel, block, 1)[n%GemmPanel]
	return q.number(word>>(k%q.per()*q.Bits), zero) * q.Scales[q.blockAt(n, block)]
}

// Row adds to sums the products of a and rows k0 to k1 of the columns of panel and, beyond 16 sums, of the next one.
// Sums are chains in the order of k, bit-identical to GemmFloat that accumulates into the same value, if scales of
// 4-bit integers are 0 or at least 2^-102. k0 is the first row of a word.
func (q *Quantized) Row(sums, a []float32, panel, k0, k1 int) {
	q.check(k0, k1)
	checkLen("a", len(a), k1-k0)
	checkRows(len(sums), GemmPanel)
	for k0 < k1 {
		// Values become floats in registers only: decoding of a language model reads each byte once. For 4-bit
		// integers, bytes of four rows are subtracted from their zero points at once, and a shuffle makes a byte the
		// highest of a word, which sign-extends it: 14.4 instead of 9.5 weights/ns in the L2 cache.
		done := q.rowBulk(sums, a, panel, k0, k1)
		if done == 0 {
			done = min(q.per(), k1-k0)
			q.rowWord(sums, a[:done], panel, k0)
		}
		a, k0 = a[done:], k0+done
	}
}

// rowWord is Row of at most one word.
func (q *Quantized) rowWord(sums, a []float32, panel, k0 int) {
	var rows [GemmPanel * GemmPanel]float32
	for i := 0; i < len(sums); i += GemmPanel {
		q.Decode(rows[:], panel+i/GemmPanel, k0, k0+len(a))
		GemvFloat(sums[i:i+GemmPanel], a, 1, rows[:], GemmPanel, len(a))
	}
}
