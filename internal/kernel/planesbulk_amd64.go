//go:build amd64 && !noasm

package kernel

// wholePlanes is the number of elements of a plane that the assembly processes.
func wholePlanes(p []byte) int {
	if !hasAVX2 {
		return 0
	}
	return len(p) &^ 31
}

// turns are the shifts of a rotation by one bit to the left of elements of some bits, or of none.
func turns(turn bool, bits int) (left, right int) {
	if turn {
		return 1, bits - 1
	}
	return 0, bits
}

// backTurns are the shifts of the inverse.
func backTurns(turn bool, bits int) (left, right int) {
	right, left = turns(turn, bits)
	return left, right
}

func splitPlanes2Bulk(p0, p1, src []byte, turn bool) int {
	n := wholePlanes(p0)
	if n > 0 {
		left, right := turns(turn, 16)
		splitPlanes2AVX2(&p0[0], &p1[0], &src[0], n, left, right)
	}
	return n
}

func mergePlanes2Bulk(dst, p0, p1 []byte, turn bool) int {
	n := wholePlanes(p0)
	if n > 0 {
		left, right := backTurns(turn, 16)
		mergePlanes2AVX2(&dst[0], &p0[0], &p1[0], n, left, right)
	}
	return n
}

func splitPlanes4Bulk(p0, p1, p2, p3, src []byte, turn bool) int {
	n := wholePlanes(p0)
	if n > 0 {
		left, right := turns(turn, 32)
		splitPlanes4AVX2(&p0[0], &p1[0], &p2[0], &p3[0], &src[0], n, left, right)
	}
	return n
}

func mergePlanes4Bulk(dst, p0, p1, p2, p3 []byte, turn bool) int {
	n := wholePlanes(p0)
	if n > 0 {
		left, right := backTurns(turn, 32)
		mergePlanes4AVX2(&dst[0], &p0[0], &p1[0], &p2[0], &p3[0], n, left, right)
	}
	return n
}
