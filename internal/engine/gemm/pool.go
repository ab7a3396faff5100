package gemm

import "sync/atomic"

// A Pool runs pieces of work at the same time: For runs f(0) to f(n-1) and returns when all are done;
// Workers is how many run at once. engine/op has the engine's.
type Pool interface {
	For(n int, f func(i int))
	Workers() int
}

// share runs f for each of the tasks, at most one at a time with the same slot, of which there are
// min(workers, tasks). Slots are what scratch is divided by.
func share(p Pool, tasks int, f func(task, slot int)) {
	var next atomic.Int64
	p.For(min(p.Workers(), tasks), func(slot int) {
		for t := int(next.Add(1)) - 1; t < tasks; t = int(next.Add(1)) - 1 {
			f(t, slot)
		}
	})
}
