package gemm

import "sync/atomic"

// A Pool runs tasks concurrently: For runs f(0) to f(n-1) and returns when all are done; Workers is the maximum number of concurrent tasks.
// engine/op has the engine's.
type Pool interface {
	For(n int, f func(i int))
	Workers() int
}

// distribute runs f for each of the tasks, at most one at a time with the same slot; there are min(workers, tasks) slots. Scratch memory is
// divided by slots.
func distribute(p Pool, tasks int, f func(task, slot int)) {
	slots := min(p.Workers(), tasks)
	if slots == 1 {
		for task := range tasks {
			f(task, 0)
		}
		return
	}
	var next atomic.Int64
	p.For(slots, func(slot int) {
		for t := int(next.Add(1)) - 1; t < tasks; t = int(next.Add(1)) - 1 {
			f(t, slot)
		}
	})
}
