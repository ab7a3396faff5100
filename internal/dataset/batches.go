package dataset

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"

	"golang.org/x/sync/semaphore"
)

// An Order is how Batches goes through a Set.
type Order struct {
	Size    int  // samples in a batch, if the model leaves it open; the last one may have fewer
	Shuffle bool // in an order that follows from Seed alone
	Seed    uint64
	Index   []int // the samples to go through, in this order; nil for all
}

// Batches ranges over the samples of s, each once, or over those of o.Index. Batches are read and converted ahead,
// in the bounds of Options.Workers and Options.Memory; their order and content depend
// on o alone. An error ends it. A batch is the caller's to keep, but only the one in the
// loop counts against the memory.
func (s *Set) Batches(ctx context.Context, o Order) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		sample, count := func(i int) int { return i }, s.count
		order := o.Index
		if order != nil {
			count = len(order)
		}
		if o.Shuffle || order != nil {
			if err := s.feed.random(); err != nil {
				yield(nil, err)
				return
			}
			if order == nil {
				order = Shuffled(s.count, o.Seed)
			}
			sample = func(i int) int { return order[i] }
		}
		inner, cancel := context.WithCancel(ctx)
		a := &ahead{
			set:    s,
			size:   s.Size(o.Size),
			count:  count,
			sample: sample,
			budget: semaphore.NewWeighted(s.opts.Memory),
			queue:  make(chan *pending, s.opts.Workers),
		}
		a.wg.Go(func() { a.read(inner) })
		defer a.wg.Wait()
		defer cancel()
		for p := range a.queue {
			<-p.done
			if !yield(p.batch, p.err) || p.err != nil {
				return
			}
			a.budget.Release(p.bytes)
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// Shuffled are the numbers below n in an order that follows from seed alone.
func Shuffled(n int, seed uint64) []int { return rand.New(rand.NewPCG(seed, shuffleStream)).Perm(n) }

// shuffleStream keeps the numbers of an order apart from others of the same seed.
const shuffleStream = 0x73687566666c65

// ahead reads batches before they are asked for.
type ahead struct {
	set    *Set
	size   int
	count  int
	sample func(int) int       // the sample at a position of the order
	budget *semaphore.Weighted // bytes of batches in the queue and in the loop
	queue  chan *pending
	wg     sync.WaitGroup
}

// A pending batch is complete when done is closed.
type pending struct {
	batch *Batch
	err   error
	bytes int64
	done  chan struct{}
}

// read loads batches in order, as files that are unpacked on the way can only be read in
// order, and leaves the rest of their making to goroutines of their own.
func (a *ahead) read(ctx context.Context) {
	defer close(a.queue)
	for first := 0; first < a.count; first += a.size {
		index := make([]int, min(a.size, a.count-first))
		for i := range index {
			index[i] = a.sample(first + i)
		}
		// A batch larger than the budget is read alone.
		p := &pending{bytes: min(a.set.feed.bytes(len(index)), a.set.opts.Memory), done: make(chan struct{})}
		if a.budget.Acquire(ctx, p.bytes) != nil {
			return
		}
		a.start(p, index, first)
		select {
		case a.queue <- p:
		case <-ctx.Done():
			return
		}
	}
}

func (a *ahead) start(p *pending, index []int, first int) {
	finish, err := a.set.feed.load(index)
	if err != nil {
		p.err = err
		close(p.done)
		return
	}
	a.wg.Go(func() {
		defer close(p.done)
		if p.batch, p.err = finish(); p.err == nil {
			p.batch.N, p.batch.First = len(index), first
		}
	})
}
