package dataset

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"

	"golang.org/x/sync/semaphore"
)

// An Order is the order in which Batches iterates over a Set.
type Order struct {
	Size    int  // batch size, if the batch axis is open; the last batch may be smaller
	Shuffle bool // in an order that depends on Seed only
	Seed    uint64
	Index   []int // the samples to read, in this order; nil for all
}

// Batches ranges over the samples of s, each once, or over those of o.Index. Batches are prefetched within Options.Workers and
// Options.Memory; their order and content depend on o only. An error ends the iteration. The caller may keep a batch, but only
// the current one counts towards the memory.
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

// Shuffled is a permutation of the numbers below n that depends on seed only.
func Shuffled(n int, seed uint64) []int { return rand.New(rand.NewPCG(seed, shuffleStream)).Perm(n) }

// shuffleStream separates the random numbers of shuffling from others of the same seed.
const shuffleStream = 0x73687566666c65

// ahead prefetches batches.
type ahead struct {
	set    *Set
	size   int
	count  int
	sample func(int) int       // maps a position in the order to a sample
	budget *semaphore.Weighted // bytes of queued and current batches
	queue  chan *pending
	wg     sync.WaitGroup
}

// A pending batch is complete once done is closed.
type pending struct {
	batch *Batch
	err   error
	bytes int64
	done  chan struct{}
}

// read loads batches in order, because compressed files are read sequentially, and converts each in a goroutine of its own.
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
