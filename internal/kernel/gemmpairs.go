package kernel

import "fmt"

// PairWindow is the number of consecutive steps of k that PairRows reorders.
const PairWindow = 32

// maxPair is the largest sum of two weights of the same sign whose products with uint8 fit int16 together: 255·128 <
// 2^15.
const maxPair = 128

// PairFits reports whether uint8·x + uint8·y always fits int16.
func PairFits(x, y int8) bool {
	a, b := int(x), int(y)
	return max(a, 0)+max(b, 0) <= maxPair && min(a, 0)+min(b, 0) >= -maxPair
}

// GemmPairs is GemmInt for elements of a of one byte on all CPUs, written by PairRows. Steps 2i and 2i+1 of k of every
// column of b must satisfy PairFits, as VPMADDUBSW sums pairs of products in 16 bits.
func GemmPairs(c []int32, ldc int, a []byte, lda int, b []byte, panel int, m, n, k int, add bool) {
	first, ldFirst := addedTo(c, ldc, add)
	(&gemmInt{c, ldc, first, ldFirst, a, lda, 1, b, panel, m, n, k}).run()
}

// RequantizePairs requantizes first + a·b, the product of GemmPairs, of whose columns q has the scales. Rows of first
// are ldFirst elements apart, 0 if all rows of the product start with the same sums. work is scratch memory for m rows
// of sums; it may be first.
func RequantizePairs(dst []byte, to int, q Requantization, first []int32, ldFirst int, work []int32, a []byte,
	lda int, b []byte, panel, m, k int) {
	n := len(q.Scale)
	if m <= 0 || n == 0 {
		return
	}
	q.check(dst, to, m*n)
	p := &requantizedPairs{gemmInt{work, n, first, ldFirst, a, lda, 1, b, panel, m, n, k}, dst, to, q}
	p.check()
	// While sums are in registers. Products of MobileNet have a depth of 16 to 100, where calls took as long as they:
	// 9.2 instead of 10.7 ms for MobileNetV2 in QDQ form when sums were stored before (one thread).
	done := p.bulk()
	if done == n {
		return
	}
	rest := n - done
	for i := range m {
		copy(work[i*rest:][:rest], first[i*ldFirst+done:])
	}
	GemmPairs(work, rest, a, lda, b[done/GemmPanel*panel:], panel, m, rest, k, true)
	Requantize(dst[done:], to, work[:m*rest], q.Part(done, n))
}

// requantizedPairs is one call of RequantizePairs.
type requantizedPairs struct {
	gemmInt
	dst []byte
	to  int
	q   Requantization
}

// PairRows copies rows of n int8 or uint8 elements for A of GemmPairs: row r of src, from bytes apart, becomes row r of
// dst, to bytes apart, as uint8. Element i of a window of dst is element order[i] of its window of src; order consists
// of whole windows, whose elements after n it keeps in place. The last window of a row of dst is written as a whole,
// with any values after n. dst may be src.
func PairRows(dst []byte, to int, src []byte, from, rows, n int, signed bool, order []byte) {
	if n == 0 || rows == 0 {
		return
	}
	whole := (n + PairWindow - 1) / PairWindow * PairWindow
	within("dst", len(dst), (rows-1)*to+whole)
	within("src", len(src), (rows-1)*from+n)
	if len(order) != whole || to < whole {
		panic(fmt.Sprintf("kernel: order of %d elements and rows of %d, want %d", len(order), to, whole))
	}
	flip := byte(0)
	if signed {
		flip = 0x80
	}
	// The kernel reads whole windows.
	bulk := rows // those whose last window src has as a whole
	for bulk > 0 && (bulk-1)*from+whole > len(src) {
		bulk--
	}
	if !shuffleBulk(dst, to, src, from, bulk, whole, flip, order) {
		bulk = 0
	}
	for r := bulk; r < rows; r++ {
		done := n / PairWindow * PairWindow
		if !shuffleBulk(dst[r*to:], to, src[r*from:], from, 1, done, flip, order) {
			done = 0
		}
		shuffleGo(dst[r*to+done:], src[r*from+done:][:n-done], flip, order[done:])
	}
}

func shuffleGo(dst, src []byte, flip byte, order []byte) {
	for at := 0; at < len(src); at += PairWindow {
		var window [PairWindow]byte
		n := copy(window[:], src[at:])
		for i, from := range order[at:][:n] {
			dst[at+i] = window[from%PairWindow] ^ flip
		}
	}
}

// PairSums adds the sums of rows of n elements that PairRows wrote, minus zero, to sums.
func PairSums(a []byte, lda, n int, zero int32, sums []int32) {
	for r := range sums {
		row := a[r*lda:][:n]
		sum, _ := flipRow(row, row, false, zero)
		sums[r] += sum
	}
}
