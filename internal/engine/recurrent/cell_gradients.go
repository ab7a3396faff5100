package recurrent

import "github.com/mcompress/mcompress/internal/engine/gemm"

// An rnnGradient is the gradient of rnn.
type rnnGradient[T number] struct {
	*gradient[T]
	r stepFactor[T]
}

func newRNNGradient[T number](g *gradient[T]) *rnnGradient[T] {
	return &rnnGradient[T]{g, g.stepFactorOf(g.r, g.H)}
}

func (g *rnnGradient[T]) recompute() {
	g.eachSequence(func(n, steps int) {
		for i := range steps {
			g.gate(0, g.stateRow(g.gates, g.inputAt(g.stepOf(i, n), n)))
		}
	})
}

func (g *rnnGradient[T]) back(i int) {
	g.each(i, func(n, row int) {
		dh, y, dg := g.outputGradient(i, n), g.stateRow(g.gates, row), g.stateRow(g.dgates, n)
		copy(dg, dh)
		// y is the value of the gate, from which the derivative follows; it is overwritten afterwards by the gradient.
		g.derive(0, dg, y, true)
		copy(y, dg)
		// The gradient with respect to the state before comes from R alone, and is added by step.
		clear(dh)
	})
	g.step(g.dh, g.dgates, g.H, g.r, true)
}

// outputGradient adds the gradient of Y at step i of sequence n to that of its state, and returns the latter.
func (g *gradient[T]) outputGradient(i, n int) []T {
	dh := g.stateRow(g.dh, n)
	if g.dy != nil {
		for j, v := range g.dy[g.outputAt(g.stepOf(i, n), n):][:g.H] {
			dh[j] += v
		}
	}
	return dh
}

// An lstmGradient is the gradient of lstm.
type lstmGradient[T number] struct {
	*gradient[T]
	r stepFactor[T]
}

func newLSTMGradient[T number](g *gradient[T]) *lstmGradient[T] {
	return &lstmGradient[T]{g, g.stepFactorOf(g.r, 4*g.H)}
}

// gateRows are the rows of i, o, f and c.
func gateRows[T number](x []T, row, h int) (i, o, f, c []T) {
	x = x[row*4*h:][:4*h]
	return x[:h:h], x[h : 2*h : 2*h], x[2*h : 3*h : 3*h], x[3*h:]
}

func (g *lstmGradient[T]) recompute() {
	g.eachSequence(func(n, steps int) {
		for step := range steps {
			// The order is that of the cell: i and f depend on the cell before, o on the new one.
			row, before := g.inputAt(g.stepOf(step, n), n), g.cellBefore(step, n)
			i, o, f, c := gateRows(g.gates, row, g.H)
			cell := g.stateRow(g.cells, row)
			g.addPeephole(i, before, 0)
			g.gate(0, i)
			if g.coupled {
				for j, v := range i {
					f[j] = 1 - v
				}
			} else {
				g.addPeephole(f, before, 2)
				g.gate(0, f)
			}
			g.gate(1, c)
			for j := range cell {
				cell[j] = f[j]*before[j] + i[j]*c[j]
			}
			g.addPeephole(o, cell, 1)
			g.gate(0, o)
		}
	})
}

// addPeephole adds c times part of P to x.
func (g *lstmGradient[T]) addPeephole(x, c []T, part int) {
	if g.peep != nil {
		addProduct(x, g.peep[part*g.H:], c)
	}
}

func addProduct[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for j := range dst {
		dst[j] += a[j] * b[j]
	}
}

func (g *lstmGradient[T]) back(step int) {
	g.each(step, func(n, row int) {
		g.gateGradients(n, row, g.cellBefore(step, n), g.outputGradient(step, n), g.stateRow(g.dc, n))
		copy(g.gates[row*4*g.H:], g.dgates[n*4*g.H:][:4*g.H])
	})
	g.step(g.dh, g.dgates, 4*g.H, g.r, true)
}

// gateGradients computes those of one row, and that of the cell before it in dc. It clears dh.
func (g *lstmGradient[T]) gateGradients(n, row int, before, dh, dc []T) {
	i, o, f, c := gateRows(g.gates, row, g.H)
	di, do, df, dg := gateRows(g.dgates, n, g.H)
	// Scratch that only a GRU uses otherwise.
	out := g.stateRow(g.dreset, n) // h(cell)
	copy(out, g.stateRow(g.cells, row))
	activate(g.f[2], out)
	for j, v := range dh {
		do[j], di[j] = v*out[j], v*o[j]
	}
	g.derive(0, do, o, true)
	g.derive(2, di, out, false)
	// di was used for the gradient of h(c), as its own value is computed below.
	for j, v := range di {
		dc[j] += v
	}
	// o depends on the new cell, so its gradient comes before those of the other gates.
	g.addPeephole(dc, do, 1)
	for j, v := range dc {
		di[j], df[j], dg[j] = v*c[j], v*before[j], v*i[j]
		dc[j] = v * f[j]
	}
	// f = 1 - i: the gradient of f goes to i with the opposite sign, and f has no sums of its own.
	if g.coupled {
		for j := range di {
			di[j] -= df[j]
		}
		clear(df)
	}
	g.derive(0, di, i, true)
	g.derive(0, df, f, true)
	g.derive(1, dg, c, true)
	g.addPeephole(dc, di, 0)
	g.addPeephole(dc, df, 2)
	clear(dh)
}

// peepholeGradient sums the gradients of P.
func (g *gradient[T]) peepholeGradient(dp []T) {
	clear(dp)
	for n := range g.N {
		for step := range g.T {
			t := g.stepOf(step, n)
			if t < 0 {
				break
			}
			row := g.inputAt(t, n)
			i, o, f, _ := gateRows(g.gates, row, g.H)
			before := g.cellBefore(step, n)
			addProduct(dp[:g.H], i, before)
			addProduct(dp[g.H:2*g.H], o, g.stateRow(g.cells, row))
			addProduct(dp[2*g.H:], f, before)
		}
	}
}

// A gruGradient is the gradient of gru.
type gruGradient[T number] struct {
	*gradient[T]
	update stepFactor[T] // the rows of R that are multiplied by dgates
	hidden stepFactor[T] // without linear_before_reset, those of the hidden gate
}

func newGRUGradient[T number](g *gradient[T]) *gruGradient[T] {
	c := &gruGradient[T]{gradient: g}
	if g.linear {
		c.update = g.stepFactorOf(g.r, 3*g.H)
	} else {
		c.update, c.hidden = g.stepFactorOf(g.r, 2*g.H), g.stepFactorOf(g.r[2*g.H*g.H:], g.H)
	}
	return c
}

// rows are those of z, r and h.
func (g *gruGradient[T]) rows(x []T, row int) (z, r, h []T) {
	x = x[row*3*g.H:][:3*g.H]
	return x[:g.H:g.H], x[g.H : 2*g.H : 2*g.H], x[2*g.H:]
}

func (g *gruGradient[T]) recompute() {
	g.eachRow(func(row int) {
		_, r, _ := g.rows(g.gates, row)
		g.gate(0, g.gates[row*3*g.H:][:2*g.H])
		if !g.linear {
			to := g.stateRow(g.reset, row)
			clear(to)
			addProduct(to, r, g.stateRow(g.before, row))
		}
	})
	// For all steps at once: r and h before each step are known, as the forward pass stored the states.
	all, hidden := gemm.Shape{M: g.T * g.N, N: g.H, K: g.H}, gemm.Rows(g.r[2*g.H*g.H:], g.H).T()
	if g.linear {
		g.multiply(all, gemm.Rows(g.before, g.H), hidden, gemm.Rows(g.reset, g.H), false)
	} else {
		g.multiply(all, gemm.Rows(g.reset, g.H), hidden, gemm.Rows(g.gates[2*g.H:], 3*g.H), true)
	}
	g.eachRow(func(row int) {
		_, r, h := g.rows(g.gates, row)
		if g.linear {
			more := g.stateRow(g.reset, row)
			if g.bias != nil {
				for j, v := range g.bias[5*g.H:][:g.H] {
					more[j] += v
				}
			}
			addProduct(h, more, r)
		}
		g.gate(1, h)
	})
}

// eachRow calls f for the rows of all steps.
func (g *gruGradient[T]) eachRow(f func(row int)) {
	g.c.Pool.Rows(g.T*g.N, max(1, rowGrain/g.H), func(from, to int) {
		for row := from; row < to; row++ {
			f(row)
		}
	})
}

func (g *gruGradient[T]) back(i int) {
	g.each(i, func(n, row int) {
		dh := g.outputGradient(i, n)
		z, r, h := g.rows(g.gates, row)
		dz, dr, dg := g.rows(g.dgates, n)
		before := g.stateRow(g.before, row)
		// h' = (1-z)·ĥ + z·h, of which dh keeps the direct part.
		for j, v := range dh {
			dg[j], dz[j], dh[j] = v*(1-z[j]), v*(before[j]-h[j]), v*z[j]
		}
		g.derive(1, dg, h, true)
		g.derive(0, dz, z, true)
		copy(h, dg)
		copy(z, dz)
		if g.linear {
			more := g.stateRow(g.reset, row)
			for j, v := range dg {
				dr[j], dg[j] = v*more[j], v*r[j]
			}
			copy(more, dg)
			g.derive(0, dr, r, true)
			copy(r, dr)
		}
	})
	if g.linear {
		g.step(g.dh, g.dgates, 3*g.H, g.update, true)
		return
	}
	// Through Rh to r∘h first, as the gradient of r is needed for the product with the other rows of R.
	g.step(g.dreset, g.dgates[2*g.H:], 3*g.H, g.hidden, false)
	g.each(i, func(n, row int) {
		_, r, _ := g.rows(g.gates, row)
		_, dr, _ := g.rows(g.dgates, n)
		before, dreset := g.stateRow(g.before, row), g.stateRow(g.dreset, n)
		addProduct(g.stateRow(g.dh, n), dreset, r)
		for j, v := range dreset {
			dr[j] = v * before[j]
		}
		g.derive(0, dr, r, true)
		copy(r, dr)
	})
	g.step(g.dh, g.dgates, 3*g.H, g.update, true)
}
