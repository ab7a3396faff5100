package kernel

// A GemmFinish is what GemmFinished does with sums while they are in registers: it adds Bias, an element per column or nil, and bounds them
// like Clip does by Lo and Hi.
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

// finishInPasses starts the sums at the bias if nothing else is added: its sum with a product is the same in either order.
func (g *gemm) finishInPasses(f GemmFinish) {
	starts := f.Bias != nil && !g.add
	for i := 0; starts && i < g.m; i++ {
		copy(g.c[i*g.ldc:][:g.n], f.Bias)
	}
	GemmFloat(g.c, g.ldc, g.a, g.b, g.m, g.n, g.k, g.add || starts)
	for i := range g.m {
		row := g.c[i*g.ldc:][:g.n]
		if f.Bias != nil && !starts {
			Add(row, row, f.Bias)
		}
		Clip(row, row, f.Lo, f.Hi)
	}
}
