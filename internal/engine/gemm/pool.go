package gemm

// A Pool runs tasks concurrently: Slots runs f for each of n tasks, at most one at a time with the same slot, of which
// there are at most as many as Workers, and returns when all are done; For is Slots without slots. Scratch memory is
// divided by slots. engine/op has the engine's.
type Pool interface {
	For(n int, f func(i int))
	Slots(n int, f func(task, slot int))
	Workers() int
}

// CallerPool is a pool whose only worker is the caller.
type CallerPool struct{}

// For runs f(0) to f(n-1) one after the other.
func (CallerPool) For(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// Slots runs one task after the other.
func (a CallerPool) Slots(n int, f func(task, slot int)) { a.For(n, func(i int) { f(i, 0) }) }

// Workers is one.
func (CallerPool) Workers() int { return 1 }
