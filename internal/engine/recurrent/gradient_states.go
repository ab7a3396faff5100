package recurrent

import "github.com/mcompress/mcompress/ir"

// gatherStates fills before; rows after the end of a sequence are zero.
func (g *gradient[T]) gatherStates() {
	g.eachSequence(func(n, steps int) {
		for i := range g.T {
			if i >= steps {
				clear(g.stateRow(g.before, g.inputAt(i, n)))
				continue
			}
			to := g.stateRow(g.before, g.inputAt(g.stepOf(i, n), n))
			if i == 0 {
				copy(to, g.initial(g.h0, n))
			} else {
				copy(to, g.y[g.outputAt(g.stepOf(i-1, n), n):])
			}
		}
	})
}

// stateRow is row i of states.
func (g *gradient[T]) stateRow(states []T, i int) []T { return states[i*g.H:][:g.H] }

// initial is the initial state of sequence n.
func (g *gradient[T]) initial(state []T, n int) []T {
	if state == nil {
		return g.zero
	}
	return state[g.stateAt(n):][:g.H]
}

// cellBefore is the state c of sequence n before step i.
func (g *gradient[T]) cellBefore(i, n int) []T {
	if i == 0 {
		return g.initial(g.c0, n)
	}
	return g.stateRow(g.cells, g.inputAt(g.stepOf(i-1, n), n))
}

// loadState reads the gradient of a final state, zero if there is none.
func (g *gradient[T]) loadState(state, from []T) {
	for n := range g.N {
		copy(g.stateRow(state, n), g.initial(from, n))
	}
}

// storeState writes the gradient of an initial state.
func (g *gradient[T]) storeState(out int, state []T) {
	if to := g.output(out); to != nil {
		for n := range g.N {
			copy(to[g.stateAt(n):], g.stateRow(state, n))
		}
	}
}

// output is the gradient of an input; nil if it has no consumer or there is no such input.
func (g *gradient[T]) output(i int) []T {
	if i >= len(g.c.Out) || g.c.Out[i] == nil || g.c.Opt(differentiated[i]) == nil || i > outH && !g.cell {
		return nil
	}
	return ir.View[T](g.c.Out[i])
}
