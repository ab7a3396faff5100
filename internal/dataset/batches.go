package dataset

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcompress/mcompress/ir"
)

// An Order is the order in which Batches iterates over a Set.
type Order struct {
	Size    int  // batch size, if the batch axis is open; the last batch may be smaller
	Shuffle bool // in an order that depends on Seed only
	Seed    uint64
	Index   []int // the samples to read, in this order; nil for all

	// Reuse reads batches into the memory of earlier ones: a batch is valid until the next one, or until the end of the
	// iteration.
	Reuse bool

	// Change changes each batch in place, in the loaders: concurrently with other batches. It may depend on the batch
	// only. nil for no change.
	Change func(*Batch) error
}

// Batches ranges over the samples of s, each once, or over those of o.Index. One goroutine reads ahead, and
// Options.Loaders goroutines convert, decode and change what it read; the order and content of batches depend on o
// only. An error ends the iteration. At most Held and Resident bytes are in use, of which the current batch is one:
// without o.Reuse the caller may keep it, but then it counts towards the caller's memory.
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
		a := newAhead(s, o, count, sample)
		defer a.release()
		// Deferred calls run in reverse: the goroutines are told to end, then waited for, then their memory is
		// reused.
		inner, cancel := context.WithCancel(ctx)
		a.start(inner)
		defer a.wg.Wait()
		defer cancel()
		for p := range a.queue {
			// The queue has the order of the samples, in whichever order loaders complete them.
			<-p.done
			if !yield(p.batch, p.err) || p.err != nil {
				return
			}
			a.setBytes(p, 0)
			p.buffers.recycle()
			a.free <- p.buffers
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// position is that of sample i in the data.
func (s *Set) position(i int) int {
	if s.drawn != nil {
		return s.drawn[i]
	}
	return i
}

// Shuffled is a permutation of the numbers below n that depends on seed only.
func Shuffled(n int, seed uint64) []int { return rand.New(rand.NewPCG(seed, shuffleStream)).Perm(n) }

// shuffleStream separates the random numbers of shuffling from others of the same seed.
const shuffleStream = 0x73687566666c65

// BatchBytes bounds the memory of a batch of n samples during loading, in bytes.
func (s *Set) BatchBytes(n int) int64 { return s.feed.bytes(s.Size(n)) }

// Transient bounds the memory that a batch of n samples takes during loading and that is allocated anew for each batch,
// in bytes, also with Order.Reuse: decoded image files, text.
func (s *Set) Transient(n int) int64 { return s.feed.transient(s.Size(n)) }

// Resident is the memory of data that is held between batches, in bytes.
func (s *Set) Resident() int64 { return s.feed.resident() }

// Held is the memory of the batches of Batches, of this many bytes: the current one and those that are read ahead.
// Without Options.Prefetch it is that for a number of worker threads.
func (o Options) Held(batch int64, workers int) int64 {
	o.setDefaults()
	return batch * int64(1+o.prefetch(batch, workers))
}

// prefetch is the number of batches of this many bytes that are read ahead.
func (o *Options) prefetch(batch int64, workers int) int {
	if o.Prefetch != nil {
		return *o.Prefetch
	}
	return max(0, min(workers, int(o.Memory/max(1, batch))-1))
}

// prefetcher reads batches before they are used.
type prefetcher struct {
	set       *Set
	order     Order
	size      int
	count     int
	sample    func(int) int // maps a position in the order to a sample
	loaders   int
	idle      idleness
	heldBytes atomic.Int64 // bytes of batches
	buffers   []*buffers   // one for each batch in memory, that of the consumer included; nil ones without Order.Reuse

	free  chan *buffers
	queue chan *pending // in order
	work  chan *pending // read, to be converted
	wg    sync.WaitGroup
}

// A pending batch is complete once done is closed.
type pending struct {
	finish  func() (*Batch, error)
	first   int
	n       int
	batch   *Batch
	buffers *buffers
	bytes   int64 // in memory, without buffers
	err     error
	done    chan struct{}
}

func newAhead(s *Set, o Order, count int, sample func(int) int) *prefetcher {
	a := &prefetcher{set: s, order: o, size: s.Size(o.Size), count: count, sample: sample,
		idle: idleness{sum: &s.stats.idle}}
	batches := (count + a.size - 1) / a.size
	inMemory := 1 + min(s.opts.prefetch(s.feed.bytes(a.size), s.opts.Workers), batches)
	a.buffers = make([]*buffers, inMemory)
	if o.Reuse {
		a.buffers = s.recycler.take(inMemory)
	}
	a.free, a.queue, a.work = make(chan *buffers, inMemory), make(chan *pending, inMemory), make(chan *pending, inMemory)
	for _, b := range a.buffers {
		a.free <- b
	}
	a.loaders = max(1, min(s.opts.Loaders, inMemory))
	s.stats.loaders.Store(int64(a.loaders))
	return a
}

func (a *prefetcher) start(ctx context.Context) {
	a.wg.Go(func() { a.readBatches(ctx) })
	for range a.loaders {
		a.wg.Go(func() { a.loadBatches(ctx) })
	}
}

// readBatches reads batches in order, because compressed files are read sequentially.
func (a *prefetcher) readBatches(ctx context.Context) {
	defer close(a.queue)
	defer close(a.work)
	for first := 0; first < a.count; first += a.size {
		var free *buffers
		select {
		case free = <-a.free:
		case <-ctx.Done():
			return
		}
		index := make([]int, min(a.size, a.count-first))
		for i := range index {
			index[i] = a.set.position(a.sample(first + i))
		}
		p := &pending{first: first, n: len(index), buffers: free, done: make(chan struct{})}
		a.idle.begin()
		a.setBytes(p, a.set.feed.bytes(p.n))
		began := time.Now()
		p.finish, p.err = a.set.feed.load(index, p.buffers)
		addSince(&a.set.stats.read, began)
		a.work <- p // buffered for all slots
		a.queue <- p
	}
}

// loadBatches makes batches of what was read.
func (a *prefetcher) loadBatches(ctx context.Context) {
	for p := range a.work {
		if p.err == nil {
			p.err = ctx.Err()
		}
		if p.err == nil {
			a.makeBatch(p)
		}
		a.idle.end()
		close(p.done)
	}
}

// makeBatch decodes, converts and changes a batch.
func (a *prefetcher) makeBatch(p *pending) {
	began := time.Now()
	p.batch, p.err = p.finish()
	addSince(&a.set.stats.decode, began)
	if p.err != nil {
		return
	}
	p.finish = nil // and the memory that it read into
	p.batch.N, p.batch.First = p.n, p.first
	if a.order.Change != nil {
		began := time.Now()
		p.err = a.order.Change(p.batch)
		addSince(&a.set.stats.augment, began)
	}
	if p.err != nil {
		p.batch = nil
		return
	}
	// What was read is garbage now; the batch alone remains.
	a.setBytes(p, p.batch.Bytes())
	a.set.stats.samples.Add(int64(p.n))
}

// setBytes sets the bytes of a batch in memory. Those of buffers are counted by the recycler.
func (a *prefetcher) setBytes(p *pending, bytes int64) {
	if a.order.Reuse {
		return
	}
	a.heldBytes.Add(bytes - p.bytes)
	a.set.stats.held.Add(bytes - p.bytes)
	p.bytes = bytes
}

// release forgets the batches that are in memory when the iteration ends.
func (a *prefetcher) release() {
	a.set.stats.held.Add(-a.heldBytes.Load())
	if a.order.Reuse {
		a.set.recycler.put(a.buffers)
	}
}

// Bytes is the memory of the arrays of b.
func (b *Batch) Bytes() (bytes int64) {
	for _, arrays := range []map[string]*ir.Array{b.Inputs, b.Outputs} {
		for _, x := range arrays {
			bytes += x.Bytes()
		}
	}
	for _, x := range []*ir.Array{b.Labels, b.Attended} {
		if x != nil {
			bytes += x.Bytes()
		}
	}
	for _, tokens := range b.Targets {
		bytes += 8 * int64(len(tokens))
	}
	return bytes
}
