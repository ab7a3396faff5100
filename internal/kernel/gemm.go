package kernel

import "fmt"

// GemmPanel is the number of columns of a panel of B.
const GemmPanel = 16

// GemmA is a left operand: element (i, k) is Data[i/R*Strip+i%R*Row+k*K], where R is GemmRows. Rows of any matrix have
// Strip = R*Row.
type GemmA struct {
	Data          []float32
	Strip, Row, K int
}

// GemmB is a right operand: element (k, j) is Data[j/16*Panel+k*K+j%16]. Rows of a matrix have Panel = 16. The last
// panel is 16 columns wide too, and its surplus columns are multiplied too. The next panels are prefetched: Next, if
// not 0, is the index in Data of what is multiplied after the last ones.
type GemmB struct {
	Data     []float32
	Panel, K int
	Next     int
}

// GemmRows is the number of rows of a strip: those multiplied at once on this CPU.
func GemmRows() int { return gemmRows() }

// GemmFloat stores the product of m×k elements of a and k×n of b as rows of c that are ldc elements apart, or adds it
// to them.
//
// Every element is one chain of k fused multiply-adds in the order of k, for any m and n and any vector length of the
// CPU, so that it is bit-identical on all CPUs with FMA. The twin rounds every product too: its results are close, not
// equal.
func GemmFloat(c []float32, ldc int, a GemmA, b GemmB, m, n, k int, add bool) {
	if m <= 0 || n <= 0 {
		return
	}
	g := gemm{c, ldc, a, b, m, n, k, add}
	g.check()
	// The kernels have no case for an empty sum.
	if k == 0 {
		g.nothing()
	} else if !g.bulk() {
		g.plain()
	}
}

// gemm is one call of GemmFloat.
type gemm struct {
	c       []float32
	ldc     int
	a       GemmA
	b       GemmB
	m, n, k int
	add     bool
}

// check panics unless all accessed elements exist.
func (g *gemm) check() {
	if g.k < 0 || g.ldc < 0 || g.a.Strip < 0 || g.a.Row < 0 || g.a.K < 0 || g.b.Panel < 0 || g.b.K < 0 {
		panic(fmt.Sprintf("kernel: GEMM of k=%d with a negative stride or length", g.k))
	}
	within("c", len(g.c), (g.m-1)*g.ldc+g.n)
	if g.k == 0 {
		return
	}
	// Two strips may overlap or be in any order: the last one, which may be lower, and the last whole one are compared.
	high := GemmRows()
	tall := (g.m-1)/high*g.a.Strip + (g.m-1)%high*g.a.Row
	if g.m > high {
		tall = max(tall, ((g.m-1)/high-1)*g.a.Strip+(high-1)*g.a.Row)
	}
	within("a", len(g.a.Data), tall+(g.k-1)*g.a.K+1)
	within("b", len(g.b.Data), (g.n-1)/GemmPanel*g.b.Panel+(g.k-1)*g.b.K+GemmPanel)
}

// within panics unless a slice called name has at least want elements.
func within(name string, got, want int) {
	if got < want {
		panic(fmt.Sprintf("kernel: length of %s is %d, want at least %d", name, got, want))
	}
}

// nothing is the empty sum.
func (g *gemm) nothing() {
	for i := 0; i < g.m && !g.add; i++ {
		clear(g.c[i*g.ldc:][:g.n])
	}
}

// plain is the twin.
func (g *gemm) plain() {
	high := GemmRows()
	for i := range g.m {
		a := g.a.Data[i/high*g.a.Strip+i%high*g.a.Row:]
		for j := 0; j < g.n; j += GemmPanel {
			c := g.c[i*g.ldc+j:][:min(GemmPanel, g.n-j)]
			g.row(c, a, g.b.Data[j/GemmPanel*g.b.Panel:])
		}
	}
}

// row computes the part of a row in one panel.
func (g *gemm) row(c, a, b []float32) {
	var sums [GemmPanel]float32
	for k := range g.k {
		x, y := a[k*g.a.K], b[k*g.b.K:][:GemmPanel]
		for j := range sums {
			// The conversion rounds the product: arm64 would fuse it with the sum, and plain Go has no fused float32 of
			// acceptable speed on amd64. So the twin is close to the assembly, not equal.
			sums[j] += float32(x * y[j])
		}
	}
	// Block sums are added after they are complete, as the assembly does.
	for j := range c {
		if g.add {
			sums[j] += c[j]
		}
		c[j] = sums[j]
	}
}
