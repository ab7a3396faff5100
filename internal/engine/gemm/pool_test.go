package gemm

import "sync"

// workers is a pool for tests with that number of goroutines.
type workers int

func (w workers) Workers() int { return int(w) }

func (w workers) For(n int, f func(i int)) { w.Slots(n, func(i, _ int) { f(i) }) }

func (w workers) Slots(n int, f func(task, slot int)) {
	var all sync.WaitGroup
	slots := make(chan int, w)
	for i := range int(w) {
		slots <- i
	}
	for i := range n {
		slot := <-slots
		all.Go(func() {
			f(i, slot)
			slots <- slot
		})
	}
	all.Wait()
}
