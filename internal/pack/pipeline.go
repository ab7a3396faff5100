package pack

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// A chunk is a record on its way through the pipeline. Its memory is used again for later ones.
type chunk struct {
	header
	number  int
	task    *task
	raw     []byte
	payload []byte
	before  []byte // the chunk that may be the same
	err     error
	done    chan struct{}
}

// chunkMemory is about what a chunk in the pipeline needs.
const chunkMemory = 3 * maxChunk

// A pipeline processes chunks by workers and passes them on in order.
type pipeline struct {
	workers int
	small   bool                         // whether the container is small
	next    func(*chunk) (bool, error)   // fills in the next chunk, false after the last one
	work    func(*chunker, *chunk) error // runs in the workers
	emit    func(*chunk) error           // gets the chunks in order
}

// width is the number of workers for a limit of memory; 0 is no limit.
func width(workers int, memory int64) int {
	if memory > 0 {
		workers = min(workers, int(memory/(3*chunkMemory)))
	}
	return max(1, workers)
}

// run returns the error of the first chunk that has one, whatever the number of workers.
func (p pipeline) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	// A worker finds the next chunk read while the last one waits to be written. There are no others in memory.
	n := 2*p.workers + 1
	free, todo, order := make(chan *chunk, n), make(chan *chunk, n), make(chan *chunk, n)
	for range n {
		free <- &chunk{}
	}
	g.Go(func() error {
		defer close(todo)
		defer close(order)
		for number := 0; ; number++ {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case c := <-free:
				*c = chunk{number: number, raw: c.raw, payload: c.payload, before: c.before, done: make(chan struct{})}
				more, err := p.next(c)
				if !more && err == nil {
					return nil
				}
				if c.err = err; err != nil {
					close(c.done)
					order <- c
					return nil
				}
				order <- c // never blocks, nor does todo: their capacity is the number of chunks
				todo <- c
			}
		}
	})
	for range p.workers {
		g.Go(func() error {
			worker := newChunker(p.small)
			for c := range todo {
				if c.err = context.Cause(ctx); c.err == nil {
					c.err = p.work(worker, c)
				}
				close(c.done)
			}
			return nil
		})
	}
	// In the order of the container, so that the bytes and the first error do not depend on which worker is
	// faster.
	g.Go(func() error {
		for c := range order {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-c.done:
			}
			if c.err != nil {
				return c.err
			}
			if err := p.emit(c); err != nil {
				return err
			}
			free <- c
		}
		return nil
	})
	return g.Wait()
}
