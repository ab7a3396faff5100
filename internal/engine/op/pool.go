package op

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A Pool is a fixed number of worker threads that operators share work over. Results must not depend on their number: work is split by its
// shape alone.
type Pool struct {
	workers int
	tasks   chan *task
}

type task struct {
	n      int64
	next   atomic.Int64
	done   atomic.Int64
	left   sync.WaitGroup
	f      func(i int)
	failed atomic.Pointer[any] // the first panic
}

// NewPool returns a pool of n workers, including the caller of For. Close ends it.
func NewPool(n int) *Pool {
	p := &Pool{workers: max(n, 1)}
	p.tasks = make(chan *task, 4*p.workers)
	for range p.workers - 1 {
		go p.work()
	}
	return p
}

// work runs tasks until Close.
func (p *Pool) work() {
	for {
		p.watch(func() bool { return len(p.tasks) > 0 })
		t, ok := <-p.tasks
		if !ok {
			return
		}
		t.run()
	}
}

// patience is the number of polls for more work before a worker sleeps: some 50 µs. Steps follow one another faster than a processor wakes
// up, especially a virtual one.
const patience = 20000

// watch polls until so returns true, or gives up. If there are more workers than processors it does not poll, as that would slow down the
// busy workers.
func (p *Pool) watch(so func() bool) {
	if p.workers > runtime.GOMAXPROCS(0) {
		return
	}
	for range patience {
		if so() {
			return
		}
	}
}

// Close ends the workers. No For may be running.
func (p *Pool) Close() { close(p.tasks) }

// Workers is the maximum number of concurrent tasks.
func (p *Pool) Workers() int { return p.workers }

// For runs f(0) to f(n-1) concurrently, and returns when all are done. f may call it.
func (p *Pool) For(n int, f func(i int)) {
	if n <= 1 || p.workers == 1 {
		for i := range n {
			f(i)
		}
		return
	}
	t := &task{n: int64(n), f: f}
	t.left.Add(n)
	p.offer(t, min(n, p.workers)-1)
	t.run()
	p.watch(func() bool { return t.done.Load() == t.n })
	t.left.Wait()
	if v := t.failed.Load(); v != nil {
		panic(*v)
	}
}

// offer queues the task for up to k workers. If the queue is full they are all busy.
func (p *Pool) offer(t *task, k int) {
	for range k {
		select {
		case p.tasks <- t:
		default:
			return
		}
	}
}

// Rows splits n rows into pieces of at least grain and runs f on each; the pieces depend on n and grain only.
func (p *Pool) Rows(n, grain int, f func(from, to int)) {
	grain = max(grain, (n+maxPieces-1)/maxPieces, 1)
	p.For((n+grain-1)/grain, func(i int) { f(i*grain, min(n, (i+1)*grain)) })
}

// Slots runs f for each of n tasks, at most one at a time with the same slot; there are as many slots as workers. Scratch memory is divided
// by slots; results must not depend on them.
func (p *Pool) Slots(n int, f func(task, slot int)) {
	var next atomic.Int64
	p.For(min(p.workers, n), func(slot int) {
		for t := int(next.Add(1)) - 1; t < n; t = int(next.Add(1)) - 1 {
			f(t, slot)
		}
	})
}

// maxPieces bounds the scheduling overhead, and is enough for the largest machines.
const maxPieces = 256

func (t *task) run() {
	for {
		i := t.next.Add(1) - 1
		if i >= t.n {
			return
		}
		t.one(int(i))
	}
}

func (t *task) one(i int) {
	defer t.left.Done()
	defer t.done.Add(1)
	defer func() {
		if v := recover(); v != nil {
			t.failed.CompareAndSwap(nil, &v)
		}
	}()
	t.f(i)
}
