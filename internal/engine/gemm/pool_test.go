package gemm

import "sync"

// workers is a pool for tests with that number of goroutines.
type workers int

func (w workers) Workers() int { return int(w) }

func (w workers) For(n int, f func(i int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, w)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			f(i)
			<-slots
		})
	}
	all.Wait()
}
