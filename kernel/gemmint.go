package kernel

import "fmt"

// GemmQuad is how many steps of k lie together in a packed 8-bit operand.
const GemmQuad = 4

// GemmInt stores the product of m×k elements of a and k×n of b as rows of c that lie ldc
// elements apart, or adds it to them. It is exact modulo 2^32; k is a multiple of 4.
//
// Rows of a lie lda elements apart and are what Widen makes. b is panels of 16 columns that lie
// panel bytes apart, as PackQuads makes them: element (k, j) is the int8
// b[j/16*panel+k/4*64+j%16*4+k%4].
func GemmInt(c []int32, ldc int, a []int16, lda int, b []byte, panel int, m, n, k int, add bool) {
	if m <= 0 || n <= 0 {
		return
	}
	g := gemmInt{c, ldc, a, lda, b, panel, m, n, k, add}
	g.check()
	if k == 0 || !g.bulk() {
		g.plain()
	}
}

// gemmInt is one call of GemmInt.
type gemmInt struct {
	c       []int32
	ldc     int
	a       []int16
	lda     int
	b       []byte
	panel   int
	m, n, k int
	add     bool
}

// check panics unless all that will be touched is there.
func (g *gemmInt) check() {
	if g.k < 0 || g.k%GemmQuad != 0 || g.ldc < 0 || g.lda < 0 || g.panel < 0 {
		panic(fmt.Sprintf("kernel: integer GEMM of k=%d: want multiples of %d and strides that are not negative", g.k, GemmQuad))
	}
	within("c", len(g.c), (g.m-1)*g.ldc+g.n)
	if g.k > 0 {
		within("a", len(g.a), (g.m-1)*g.lda+g.k)
		within("b", len(g.b), (g.n-1)/GemmPanel*g.panel+g.k*GemmPanel)
	}
}

// plain is the twin.
func (g *gemmInt) plain() {
	for i := range g.m {
		for j := range g.n {
			var sum int32
			if g.add {
				sum = g.c[i*g.ldc+j]
			}
			g.c[i*g.ldc+j] = sum + g.dot(i, j)
		}
	}
}

func (g *gemmInt) dot(i, j int) (sum int32) {
	if g.k == 0 {
		return 0
	}
	a, b := g.a[i*g.lda:][:g.k], g.b[j/GemmPanel*g.panel+j%GemmPanel*GemmQuad:]
	for k := 0; k < len(a); k += GemmQuad {
		x, y := a[k:][:GemmQuad], b[k*GemmPanel:][:GemmQuad]
		for q := range x {
			sum += int32(x[q]) * int32(int8(y[q]))
		}
	}
	return sum
}

// Widen makes int16 of int8 or uint8 elements, less zero, and returns their sum. zero is one
// of those elements.
func Widen(dst []int16, src []byte, signed bool, zero int32) (sum int32) {
	checkLen("dst", len(dst), len(src))
	n, sum := widenBulk(dst, src, signed, zero)
	return sum + widenGo(dst[n:], src[n:], signed, zero)
}

func widenGo(dst []int16, src []byte, signed bool, zero int32) (sum int32) {
	for i, b := range src {
		v := int32(b)
		if signed {
			v = int32(int8(b))
		}
		dst[i] = int16(v - zero)
		sum += v - zero
	}
	return sum
}

// Less takes v off every y, modulo 2^32.
func Less(y []int32, v int32) {
	n := lessBulk(y, v)
	lessGo(y[n:], v)
}

func lessGo(y []int32, v int32) {
	for i := range y {
		y[i] -= v
	}
}

// LessTimes takes (x-lift)·times off y, modulo 2^32.
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
