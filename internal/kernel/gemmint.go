package kernel

import (
	"encoding/binary"
	"fmt"
)

// GemmQuad is the number of consecutive steps of k in a packed 8-bit operand.
const GemmQuad = 4

// GemmIntWidth is the size in bytes of an element of A in GemmInt: 1 if the CPU multiplies uint8 by int8, 2 if only
// int16.
func GemmIntWidth() int { return gemmIntWidth() }

// GemmInt stores first plus the product of m×k elements of a and k×n of b as rows of c that are ldc elements apart.
// Rows of first are ldFirst elements apart, 0 for the same one; first is nil for zeros, and may be c. It is exact
// modulo 2^32; k is a multiple of 4.
//
// Rows of a are lda bytes apart and are written by GemmIntRows. b is panels of 16 columns that are panel bytes apart,
// written by PackQuads: element (k, j) is the int8 b[j/16*panel+k/4*64+j%16*4+k%4].
func GemmInt(c []int32, ldc int, first []int32, ldFirst int, a []byte, lda int, b []byte, panel int, m, n, k int) {
	(&gemmInt{c, ldc, first, ldFirst, a, lda, GemmIntWidth(), b, panel, m, n, k}).run()
}

// addedTo are the sums that a product is added to: those of c, or zeros.
func addedTo(c []int32, ldc int, add bool) (first []int32, ldFirst int) {
	if add {
		return c, ldc
	}
	return nil, 0
}

// run computes the product.
func (g *gemmInt) run() {
	if g.m <= 0 || g.n <= 0 {
		return
	}
	g.check()
	if g.k == 0 || !g.bulk() {
		g.plain()
	}
}

// gemmInt is one call of GemmInt.
type gemmInt struct {
	c       []int32
	ldc     int
	first   []int32
	ldFirst int
	a       []byte
	lda     int
	width   int // of an element of a, in bytes
	b       []byte
	panel   int
	m, n, k int
}

// check panics unless all accessed elements exist.
func (g *gemmInt) check() {
	if g.k < 0 || g.k%GemmQuad != 0 || g.ldc < 0 || g.ldFirst < 0 || g.lda < 0 || g.panel < 0 {
		panic(fmt.Sprintf("kernel: integer GEMM of k=%d: want multiples of %d and non-negative strides", g.k, GemmQuad))
	}
	within("c", len(g.c), (g.m-1)*g.ldc+g.n)
	if g.first != nil {
		within("first", len(g.first), (g.m-1)*g.ldFirst+g.n)
	}
	if g.k > 0 {
		within("a", len(g.a), (g.m-1)*g.lda+g.k*g.width)
		within("b", len(g.b), (g.n-1)/GemmPanel*g.panel+g.k*GemmPanel)
	}
}

// plain is the twin, for elements of a of either width.
func (g *gemmInt) plain() {
	row := make([]int32, g.k)
	for i := range g.m {
		g.left(row, i)
		for j := range g.n {
			var sum int32
			if g.first != nil {
				sum = g.first[i*g.ldFirst+j]
			}
			g.c[i*g.ldc+j] = sum + g.dot(row, j)
		}
	}
}

// copyFirst copies first to c, for kernels that add to c.
func (g *gemmInt) copyFirst() {
	// first may be c.
	if g.first == nil || &g.first[0] == &g.c[0] && g.ldFirst == g.ldc {
		return
	}
	for i := range g.m {
		copy(g.c[i*g.ldc:][:g.n], g.first[i*g.ldFirst:])
	}
	g.first, g.ldFirst = g.c, g.ldc
}

// left reads row i of a.
func (g *gemmInt) left(row []int32, i int) {
	for k := range row {
		if at := i*g.lda + k*g.width; g.width == 1 {
			row[k] = int32(g.a[at])
		} else {
			row[k] = int32(int16(binary.LittleEndian.Uint16(g.a[at:])))
		}
	}
}

func (g *gemmInt) dot(row []int32, j int) (sum int32) {
	if g.k == 0 {
		return 0
	}
	b := g.b[j/GemmPanel*g.panel+j%GemmPanel*GemmQuad:]
	for k := 0; k < len(row); k += GemmQuad {
		x, y := row[k:][:GemmQuad], b[k*GemmPanel:][:GemmQuad]
		for q := range x {
			sum += x[q] * int32(int8(y[q]))
		}
	}
	return sum
}

// GemmIntRows converts rows of n int8 or uint8 elements for A: row r of src, from bytes apart, becomes row r of dst, to
// bytes apart, which takes GemmIntWidth times as many bytes; src may be the end of the rows of dst. zero is the zero
// point. The sum of a row's elements minus zero is added to its element of sums. It returns the offset that remains in
// every element of dst: 0 if they are int16.
func GemmIntRows(dst []byte, to int, src []byte, from, n int, signed bool, zero int32, sums []int32) (left int32) {
	if n == 0 || len(sums) == 0 {
		return 0
	}
	within("dst", len(dst), (len(sums)-1)*to+n*GemmIntWidth())
	within("src", len(src), (len(sums)-1)*from+n)
	// VPMADDWD sums pairs of int16 exactly. VPMADDUBSW, of bytes, saturates at 16 bits: GemmPairs has weights that do
	// not.
	if GemmIntWidth() == 2 {
		widenRows(dst, to, src, from, n, signed, zero, sums)
		return 0
	}
	for r := range sums {
		var sum int32
		sum, left = flipRow(dst[r*to:][:n], src[r*from:][:n], signed, zero)
		sums[r] += sum
	}
	return left
}

// flipRow converts int8 to uint8 by adding 128.
func flipRow(dst, src []byte, signed bool, zero int32) (sum, left int32) {
	flip := byte(0)
	// VPDPBUSD multiplies uint8 by int8. The 128 that is added is part of the zero point that remains, which sums of
	// B's columns correct.
	if signed {
		flip, zero = 0x80, zero+0x80
	}
	n, sum := flipBulk(dst, src, flip)
	return sum + flipGo(dst[n:], src[n:], flip) - int32(len(src))*zero, zero
}

func flipGo(dst, src []byte, flip byte) (sum int32) {
	for i, b := range src {
		dst[i] = b ^ flip
		sum += int32(b ^ flip)
	}
	return sum
}

// widenRows converts elements minus zero to int16.
func widenRows(dst []byte, to int, src []byte, from, n int, signed bool, zero int32, sums []int32) {
	done := widenBulk(dst, to, src, from, n, signed, zero, sums)
	if done == n {
		return
	}
	for r := range sums {
		sums[r] += widenGo(dst[r*to+2*done:], src[r*from+done:][:n-done], signed, zero)
	}
}

func widenGo(dst, src []byte, signed bool, zero int32) (sum int32) {
	for i, b := range src {
		v := int32(b)
		if signed {
			v = int32(int8(b))
		}
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(v-zero))
		sum += v - zero
	}
	return sum
}

// Less subtracts v from every y, modulo 2^32.
func Less(y []int32, v int32) {
	n := lessBulk(y, v)
	lessGo(y[n:], v)
}

func lessGo(y []int32, v int32) {
	for i := range y {
		y[i] -= v
	}
}

// LessTimes subtracts (x-lift)·times from y, modulo 2^32.
func LessTimes(y, x []int32, lift, times int32) {
	checkLen("y", len(y), len(x))
	n := lessTimesBulk(y, x, lift, times)
	lessTimesGo(y[n:], x[n:], lift, times)
}

func lessTimesGo(y, x []int32, lift, times int32) {
	for i, v := range x {
		y[i] -= (v - lift) * times
	}
}
