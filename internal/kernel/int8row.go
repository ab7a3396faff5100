package kernel

import (
	"encoding/binary"
	"math"
)

// Int8Rows are rows of float32 as int8, each block of rows of a Quantized with a scale.
type Int8Rows struct {
	K, Block int
	Values   []byte    // int8, by row
	Scales   []float32 // by row and block
	Sums     []float32 // of the values of a block
}

// int8Block is the maximum number of rows of a block: sums of pairs of its products by values of 4 bits fit into 16
// bits, and its sums are exact floats.
const int8Block = 32

// Int8Block is the block of Int8Rows by which Int8Row multiplies q, 0 if it does not: it multiplies integers in whole
// blocks.
func (q *Quantized) Int8Block() int {
	// VPMADDUBSW saturates for bytes, but not for values of 2 and 4 bits: of 32 rows, sums of its pairs fit 16 bits.
	// Values of 8 bits are widened for VPMADDWD. With rows in the L2 cache: 18.9, 19.7 and 15.5 weights/ns for 2, 4 and
	// 8 bits, where Row has 3.1, 4.9 and 3.4.
	block := min(q.Block, int8Block)
	if q.Table != nil || q.Floats != nil || block != 16 && block != int8Block || q.Block%block != 0 || q.K%block != 0 {
		return 0
	}
	return block
}

// Bytes is the memory of the values, and of each of the other slices, for some rows.
func (r *Int8Rows) Bytes(rows int) (values, each int) { return rows * r.K, 4 * rows * r.blocks() }

func (r *Int8Rows) blocks() int { return r.K / r.Block }

// Set rounds row i to the nearest multiples of the scales, by which the largest magnitude of a block is 127.
func (r *Int8Rows) Set(i int, x []float32) {
	checkLen("x", len(x), r.K)
	for b := range r.blocks() {
		from, to := x[b*r.Block:][:r.Block], r.Values[i*r.K+b*r.Block:][:r.Block]
		// 127 and not 128: the range is symmetric, so that no zero point is needed.
		scale, sum := math.Float32frombits(AbsMaxBits(from))/127, int32(0)
		if scale == 0 {
			clear(to)
		} else {
			Quantize(to, from, scale, 0, IntRange{-127, 127})
		}
		for _, v := range to {
			sum += int32(int8(v))
		}
		r.Scales[i*r.blocks()+b], r.Sums[i*r.blocks()+b] = scale, float32(sum)
	}
}

// Int8Row writes the products of row i of r and the columns of panel and, beyond 16 sums, of the next one: for each
// block of r the exact sum of integer products times both scales, added in order.
func (q *Quantized) Int8Row(sums []float32, r *Int8Rows, i, panel int) {
	checkLen("rows", r.K, q.K)
	checkLen("block", r.Block, q.Int8Block())
	clear(sums)
	if !q.int8RowBulk(sums, r, i, panel) {
		for j := range sums {
			sums[j] = q.int8Go(r, i, panel*GemmPanel+j)
		}
	}
}

// int8Go is column n of the product.
func (q *Quantized) int8Go(r *Int8Rows, i, n int) (sum float32) {
	low := uint32(1)<<q.Bits - 1
	for b := range r.blocks() {
		dot := int32(0)
		for k := b * r.Block; k < (b+1)*r.Block; k++ {
			word := binary.LittleEndian.Uint32(q.Values[((n/GemmPanel*q.words()+k/q.per())*GemmPanel+n%GemmPanel)*4:])
			dot += int32(word>>(k%q.per()*q.Bits)&low) * int32(int8(r.Values[i*r.K+k]))
		}
		at, zero := q.blockAt(n, b*r.Block/q.Block), q.Zero
		if q.Zeros != nil {
			zero = float32(q.Zeros[at])
		}
		// The zero point once for a block, by the sum of its rows. Conversions round each product, as the assembly
		// does.
		product := float32(dot) - float32(zero*r.Sums[i*r.blocks()+b])
		sum += float32(product * float32(q.Scales[at]*r.Scales[i*r.blocks()+b]))
	}
	return sum
}
