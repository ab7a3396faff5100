package kernel

import "fmt"

// PairWindow is the number of consecutive steps of k that PairRows reorders.
const PairWindow = 32

// maxPair is the largest sum of two weights of the same sign whose products with uint8 fit int16 together: 255·128 < 2^15.
const maxPair = 128

// PairFits reports whether uint8·x + uint8·y always fits int16.
func PairFits(x, y int8) bool {
	a, b := int(x), int(y)
	return max(a, 0)+max(b, 0) <= maxPair && min(a, 0)+min(b, 0) >= -maxPair
}

// GemmPairs is GemmInt for elements of a of one byte on all CPUs, written by PairRows. Steps 2i and 2i+1 of k of every column of b must
// satisfy PairFits, as VPMADDUBSW sums pairs of products in 16 bits.
func GemmPairs(c []int32, ldc int, a []byte, lda int, b []byte, panel int, m, n, k int, add bool) {
	(&gemmInt{c, ldc, a, lda, 1, b, panel, m, n, k, add}).run()
}

// PairRows copies rows of n int8 or uint8 elements for A of GemmPairs: row r of src, from bytes apart, becomes row r of dst, to bytes apart,
// as uint8. Element i of a window of dst is element order[i] of its window of src; the last window may be shorter. dst may be src.
func PairRows(dst []byte, to int, src []byte, from, rows, n int, signed bool, order []byte) {
	if n == 0 || rows == 0 {
		return
	}
	within("dst", len(dst), (rows-1)*to+n)
	within("src", len(src), (rows-1)*from+n)
	if len(order) != n {
		panic(fmt.Sprintf("kernel: order of %d elements, want %d", len(order), n))
	}
	flip := byte(0)
	if signed {
		flip = 0x80
	}
	done := shuffleBulk(dst, to, src, from, rows, n, flip, order)
	for r := range rows {
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
