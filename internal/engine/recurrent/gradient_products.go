package recurrent

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
)

// sumGates computes X·Wᵀ + h·Rᵀ + Wb + Rb of all steps, as far as they do not depend on gates.
func (g *gradient[T]) sumGates() {
	rows, n, cut := g.T*g.N, g.kind.gates*g.H, g.direct()
	if g.bias != nil {
		sum := slices.Clone(g.bias[:n])
		inner := n
		if g.linear {
			inner = cut
		}
		for j, v := range g.bias[n:][:inner] {
			sum[j] += v
		}
		for i := range rows {
			copy(g.gates[i*n:], sum)
		}
	}
	g.multiply(gemm.Shape{M: rows, N: n, K: g.Input}, gemm.Rows(g.x, g.Input), gemm.Rows(g.w, g.Input).T(),
		gemm.Rows(g.gates, n), g.bias != nil)
	g.multiply(gemm.Shape{M: rows, N: cut, K: g.H}, gemm.Rows(g.before, g.H), gemm.Rows(g.r, g.H).T(),
		gemm.Rows(g.gates, n), true)
}

// direct is the number of rows of R that multiply h before the step.
func (g *gradient[T]) direct() int { return g.kind.hidden(g.c.Node) * g.H }

// products computes the gradients of X and of the parameters from those of the gates.
func (g *gradient[T]) products() {
	rows, n, cut := g.T*g.N, g.kind.gates*g.H, g.direct()
	gates := gemm.Rows(g.gates, n)
	if dx := g.output(outX); dx != nil {
		g.multiply(gemm.Shape{M: rows, N: g.Input, K: n}, gates, gemm.Rows(g.w, g.Input), gemm.Rows(dx, g.Input),
			g.d > 0)
	}
	if dw := g.output(outW); dw != nil {
		g.multiply(gemm.Shape{M: n, N: g.Input, K: rows}, gates.T(), gemm.Rows(g.x, g.Input),
			gemm.Rows(dw[g.d*n*g.Input:], g.Input), false)
	}
	if dr := g.output(outR); dr != nil {
		dr = dr[g.d*n*g.H:]
		g.multiply(gemm.Shape{M: cut, N: g.H, K: rows}, gates.T(), gemm.Rows(g.before, g.H), gemm.Rows(dr, g.H), false)
		// The hidden gate's rows of R multiply another operand than h: r∘h, or h with the gradient after r.
		if g.after() {
			a, b := gemm.Rows(g.gates[cut:], n), gemm.Rows(g.reset, g.H)
			if g.linear {
				a, b = b, gemm.Rows(g.before, g.H)
			}
			g.multiply(gemm.Shape{M: g.H, N: g.H, K: rows}, a.T(), b, gemm.Rows(dr[cut*g.H:], g.H), false)
		}
	}
	if db := g.output(outB); db != nil {
		db = db[g.d*2*n:][:2*n]
		g.sumRows(db[:n], g.gates, n)
		// Wb and Rb are added to the same sums.
		copy(db[n:], db[:n])
		if g.linear {
			g.sumRows(db[n+cut:], g.reset, g.H)
		}
	}
	if dp := g.output(outP); dp != nil {
		g.peepholeGradient(dp[g.d*3*g.H:][:3*g.H])
	}
}

// sumRows sums the rows of all steps, with this stride.
func (g *gradient[T]) sumRows(dst, x []T, stride int) {
	g.c.Pool.Rows(len(dst), columnGrain, func(from, to int) {
		sums := dst[from:to]
		clear(sums)
		for i := range g.T * g.N {
			for j, v := range x[i*stride+from:][:len(sums)] {
				sums[j] += v
			}
		}
	})
}

// columnGrain is the number of columns that one worker sums at least.
const columnGrain = 64

// multiply stores a·b in c, or adds it.
func (g *gradient[T]) multiply(s gemm.Shape, a, b, c gemm.Matrix[T], add bool) {
	if s.K == 0 && !add {
		for i := range s.M {
			clear(c.Data[i*c.Row:][:s.N])
		}
	}
	if s.M == 0 || s.N == 0 || s.K == 0 {
		return
	}
	switch a := any(a).(type) {
	case gemm.Matrix[float32]:
		to := any(c).(gemm.Matrix[float32])
		gemm.Float(g.c.Pool, s, g.product, gemm.FloatProduct{A: a, B: any(b).(gemm.Matrix[float32]), C: to.Data,
			Stride: to.Row, Accumulate: add})
	case gemm.Matrix[float64]:
		multiplyDoubles(s, a, any(b).(gemm.Matrix[float64]), any(c).(gemm.Matrix[float64]), add)
	}
}

func multiplyDoubles(s gemm.Shape, a, b, c gemm.Matrix[float64], add bool) {
	for i := range s.M {
		row := c.Data[i*c.Row:][:s.N]
		if !add {
			clear(row)
		}
		for k := range s.K {
			x := a.Data[i*a.Row+k*a.Col]
			for j := range row {
				row[j] += x * b.Data[k*b.Row+j*b.Col]
			}
		}
	}
}

// A stepFactor is a part of R that is multiplied by the gradients of every step, prepacked for float32.
type stepFactor[T number] struct {
	packed *gemm.PackedFloat
	plain  gemm.Matrix[T]
	k      int
}

// stepFactorOf is k rows of R.
func (g *gradient[T]) stepFactorOf(r []T, k int) stepFactor[T] {
	f := stepFactor[T]{plain: gemm.Rows(r, g.H), k: k}
	if m, ok := any(f.plain).(gemm.Matrix[float32]); ok {
		f.packed = gemm.PackFloat(g.c.Pool, m, k, g.H)
	}
	return f
}

// step computes dst = a·f, or adds it, for the rows of one step, which are stride elements from each other.
func (g *gradient[T]) step(dst, a []T, stride int, f stepFactor[T], add bool) {
	s := gemm.Shape{M: g.N, N: g.H, K: f.k}
	if f.packed == nil {
		g.multiply(s, gemm.Rows(a, stride), f.plain, gemm.Rows(dst, g.H), add)
		return
	}
	gemm.Float(g.c.Pool, s, g.product, gemm.FloatProduct{
		A: gemm.Rows(any(a).([]float32), stride), Packed: f.packed, C: any(dst).([]float32), Stride: g.H,
		Accumulate: add,
	})
}
