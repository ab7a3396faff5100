package kernel

import "math"

// A GemmFinish is what GemmFinished does with sums while they are in registers: it adds Bias, an element per column or
// nil, and bounds them like Clip does by Lo and Hi.
type GemmFinish struct {
	Bias   []float32
	Lo, Hi float32
}

// GemmFinished is GemmFloat, followed by Add of the bias and by Clip, with equal results.
func GemmFinished(c []float32, ldc int, a GemmA, b GemmB, m, n, k int, add bool, f GemmFinish) {
	if f.Bias != nil {
		checkLen("bias", len(f.Bias), n)
	}
	if m <= 0 || n <= 0 {
		return
	}
	g := gemm{c, ldc, a, b, m, n, k, add}
	g.check()
	if k == 0 || !g.finishBulk(f) {
		g.finishInPasses(f)
	}
}

// finishInPasses starts the sums at the bias if nothing else is added: its sum with a product is the same in either
// order.
func (g *gemm) finishInPasses(f GemmFinish) {
	starts := f.Bias != nil && !g.add
	for i := 0; starts && i < g.m; i++ {
		copy(g.c[i*g.ldc:][:g.n], f.Bias)
	}
	GemmFloat(g.c, g.ldc, g.a, g.b, g.m, g.n, g.k, g.add || starts)
	if f.Bias != nil && !starts {
		for i := range g.m {
			row := g.c[i*g.ldc:][:g.n]
			Add(row, row, f.Bias)
		}
	}
	rows, n := g.m, g.n
	if g.ldc == n {
		rows, n = 1, rows*n
	}
	for i := 0; i < rows && f.bounded(); i++ {
		row := g.c[i*g.ldc:][:n]
		Clip(row, row, f.Lo, f.Hi)
	}
}

// bounded reports whether there is a bound.
func (f GemmFinish) bounded() bool {
	return !math.IsInf(float64(f.Lo), -1) || !math.IsInf(float64(f.Hi), 1)
}
