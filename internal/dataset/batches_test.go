package dataset

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// ids are the first elements of the samples, in the order of batches.
func ids(bs []*Batch) []int64 {
	var got []int64
	for _, b := range bs {
		got = append(got, b.Classes()...)
	}
	return got
}

// numbered is a file of n samples whose label is their number, of every kind of storage.
func numberedFiles(t testing.TB, n int64) map[string]string {
	arrays := map[string]*ir.Array{"x": count[float32](n, 3), "labels": count[int64](n)}
	return map[string]string{
		"stored":   npz(t, true, arrays),
		"deflated": npz(t, false, arrays),
		"gzip": file(t, "x.npy.gz", gzipped(npy(arrays["x"]))) + "," +
			file(t, "l.npy.gz", gzipped(npy(arrays["labels"]))),
	}
}

func ptr(n int) *int { return &n }

// The order depends on the seed, not on workers, loaders, prefetch, memory or compression of the file; each sample
// occurs once, with its label.
func TestShuffledOrder(t *testing.T) {
	const n = 103
	var want []int64
	for kind, path := range numberedFiles(t, n) {
		for _, o := range []Options{{Workers: 1, Memory: 1}, {Workers: 8}, {Prefetch: new(int), Loaders: 3},
			{Prefetch: ptr(5), Loaders: 1}, {Prefetch: ptr(1 << 40), Loaders: 40}} {
			o.TempDir = t.TempDir()
			s := mustOpen(t, path, inputs(input("x", "float[n,3]")), nil, o)
			bs := all(t, s, Order{Size: 10, Shuffle: true, Seed: 5})
			for _, b := range bs {
				for i, label := range b.Classes() {
					if x := ir.View[float32](b.Inputs["x"]); x[3*i] != float32(3*label) {
						t.Fatalf("%s: label %d with a sample of %v", kind, label, x[3*i])
					}
				}
			}
			got := ids(bs)
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s with %d workers: another order", kind, o.Workers)
			}
			if other := ids(all(t, s, Order{Size: 10, Shuffle: true, Seed: 6})); slices.Equal(other, want) {
				t.Errorf("%s: seeds 5 and 6 give the same order", kind)
			}
		}
	}
	if slices.IsSorted(want) {
		t.Error("nothing was shuffled")
	}
	slices.Sort(want)
	for i, v := range want {
		if v != int64(i) {
			t.Fatalf("sample %d comes %d times", i, 2)
		}
	}
}

func TestOrderOfTheFile(t *testing.T) {
	for kind, path := range numberedFiles(t, 25) {
		s := mustOpen(t, path, inputs(input("x", "float[n,3]")), nil, Options{Workers: 4})
		for range 2 { // a compressed file is read again from its start
			bs := all(t, s, Order{Size: 10})
			if got := ids(bs); len(got) != 25 || !slices.IsSorted(got) || len(bs) != 3 || bs[2].N != 5 || bs[2].First != 20 {
				t.Errorf("%s: %v in %d batches", kind, got, len(bs))
			}
		}
	}
}

func TestLimit(t *testing.T) {
	s := mustOpen(t, numberedFiles(t, 25)["deflated"], inputs(input("x", "float[n,3]")), nil, Options{Limit: 7})
	for _, shuffle := range []bool{false, true} {
		got := ids(all(t, s, Order{Size: 4, Shuffle: shuffle}))
		slices.Sort(got)
		if s.Len() != 7 || !slices.Equal(got, []int64{0, 3, 7, 10, 14, 17, 21}) { // each has a class of its own
			t.Errorf("%d samples: %v", s.Len(), got)
		}
	}
}

// A model with a fixed batch size gets full batches; Rest is the number of remaining samples.
func TestFixedBatch(t *testing.T) {
	s := mustOpen(t, numberedFiles(t, 25)["stored"], inputs(input("x", "float[4,3]")), nil, Options{})
	bs := all(t, s, Order{Size: 100})
	if s.Size(100) != 4 || s.Len() != 24 || s.Rest() != 1 || len(bs) != 6 {
		t.Errorf("%d batches of %d, %d samples, %d left over", len(bs), s.Size(100), s.Len(), s.Rest())
	}
	_, err := Open(numberedFiles(t, 3)["stored"], inputs(input("x", "float[4,3]")), nil, Options{})
	requireError(t, err, "3 samples", "batch size 4")
}

func TestModelWithoutBatch(t *testing.T) {
	s := mustOpen(t, numberedFiles(t, 5)["stored"], inputs(input("x", "float[3]")), nil, Options{})
	bs := all(t, s, Order{Size: 100})
	if len(bs) != 5 || s.Size(100) != 1 {
		t.Fatalf("%d batches", len(bs))
	}
	sameShape(t, bs[4].Inputs["x"], 3)
}

// A fake is a feed that counts held bytes.
type fake struct {
	n, bad  int
	size1   int64
	holding atomic.Int64
	most    atomic.Int64
}

func (f *fake) len() int              { return f.n }
func (f *fake) size(want int) int     { return want }
func (f *fake) bytes(n int) int64     { return int64(n) * f.size1 }
func (f *fake) transient(n int) int64 { return int64(n) * f.size1 / 2 }
func (f *fake) random() error         { return nil }
func (f *fake) bytesRead() int64      { return 0 }
func (f *fake) resident() int64       { return 0 }
func (f *fake) labelled() bool        { return false }
func (f *fake) recorded() []string    { return nil }
func (f *fake) close() error          { return nil }

func (f *fake) load(index []int, _ *buffers) (func() (*Batch, error), error) {
	now := f.holding.Add(f.bytes(len(index)))
	f.most.Store(max(f.most.Load(), now))
	if slices.Contains(index, f.bad) {
		return nil, errors.New("sample is bad")
	}
	return func() (*Batch, error) { return &Batch{}, nil }, nil
}

// Batches in memory are the current one and those of Prefetch; without Prefetch, one for each worker thread, within
// Memory.
func TestMemoryIsBounded(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want int64
	}{
		{Options{Workers: 8, Memory: 1}, 200},
		{Options{Workers: 8, Memory: 399}, 200},
		{Options{Workers: 8, Memory: 700}, 600},
		{Options{Workers: 3, Memory: 1 << 40}, 800},
		{Options{Workers: 8, Memory: 1, Prefetch: ptr(0)}, 200},
		{Options{Workers: 8, Memory: 1, Prefetch: ptr(1)}, 400},
		{Options{Workers: 1, Loaders: 9, Prefetch: ptr(4)}, 1000},
	} {
		f := &fake{n: 200, bad: -1, size1: 100}
		s := newSet(f, c.o)
		if got := held(s, 2, c.o.Workers); got != c.want {
			t.Fatalf("%+v: %d bytes are planned, want %d", c.o, got, c.want)
		}
		if got := s.Transient(2); got != 100 {
			t.Errorf("%+v: %d bytes are allocated anew for a batch, want 100", c.o, got)
		}
		got := 0
		for b, err := range s.Batches(t.Context(), Order{Size: 2}) {
			if err != nil {
				t.Fatal(err)
			}
			for got == 0 && f.holding.Load() < c.want { // the reader fills the memory while the first batch is in use
				runtime.Gosched()
			}
			got += b.N
			f.holding.Add(-200) // the batch is released when the loop continues
		}
		if most := f.most.Load(); got != 200 || most != c.want {
			t.Errorf("%+v: %d samples; %d bytes were held, want %d", c.o, got, most, c.want)
		}
	}
}

// Batches are changed before they are yielded, by their position and not by the loader; an error ends the iteration at
// its batch.
func TestChange(t *testing.T) {
	s := mustOpen(t, numberedFiles(t, 40)["stored"], inputs(input("x", "float[n,3]")), nil,
		Options{Loaders: 7, Prefetch: ptr(9)})
	o := Order{Size: 2, Change: func(b *Batch) error {
		if b.First == 30 {
			return errors.New("not this one")
		}
		x := ir.View[float32](b.Inputs["x"])
		for i := range x {
			x[i] = float32(b.First + b.N)
		}
		return nil
	}}
	at := 0
	for b, err := range s.Batches(t.Context(), o) {
		if at == 30 {
			if err == nil || err.Error() != "not this one" {
				t.Errorf("sample 30: got error %v", err)
			}
			break
		}
		if err != nil || b.First != at || ir.View[float32](b.Inputs["x"])[5] != float32(at+2) {
			t.Fatalf("batch %+v, error %v, want that of sample %d", b, err, at)
		}
		at += 2
	}
	if at != 30 {
		t.Errorf("the batches ended at sample %d", at)
	}
}

func TestStats(t *testing.T) {
	for kind, path := range numberedFiles(t, 100) {
		s := mustOpen(t, path, inputs(input("x", "float[n,3]")), nil, Options{Loaders: 2})
		opened := s.Stats()
		if opened.Samples != 0 || opened.SamplesPerSecond() != 0 {
			t.Errorf("%s: %+v before the first batch", kind, opened)
		}
		all(t, s, Order{Size: 30})
		all(t, s, Order{Size: 30, Index: []int{5, 3}})
		got := s.Stats()
		if bytes := got.Bytes - opened.Bytes; got.Samples != 102 || bytes != 102*(12+8) {
			t.Errorf("%s: %d samples of %d bytes", kind, got.Samples, bytes)
		}
		if got.Read <= 0 || got.Decode <= 0 || got.SamplesPerSecond() <= 0 {
			t.Errorf("%s: missing times in %+v", kind, got)
		}
	}
}

// While a batch is in use and all others that may be in memory are complete, the loaders wait; after the last batch
// they do not. Afterwards no batch is in memory, also if the iteration ends early.
func TestWaitingAndMemory(t *testing.T) {
	path := numberedFiles(t, 40)["stored"]
	for prefetch, most := range []int64{1, 2, 3} {
		s := mustOpen(t, path, inputs(input("x", "float[n,3]")), nil, Options{Prefetch: ptr(prefetch), Loaders: 2})
		one := s.feed.bytes(10)
		for b, err := range s.Batches(t.Context(), Order{Size: 10}) {
			if err != nil {
				t.Fatal(err)
			}
			if held := s.InMemory(); held < b.Bytes() || held > most*one || b.Bytes() != 10*(3*4+8) {
				t.Errorf("prefetch %d: %d bytes in memory, a batch has %d, %d while it is loaded", prefetch, held, b.Bytes(), one)
			}
			if waited := s.Stats().Idle > 0; prefetch == 0 && waited != (b.First > 0) {
				t.Errorf("sample %d: loaders waited for the consumer: %v", b.First, waited)
			}
		}
		if held := s.InMemory(); held != 0 {
			t.Errorf("prefetch %d: %d bytes in memory after the iteration", prefetch, held)
		}
		for range s.Batches(t.Context(), Order{Size: 10}) {
			break
		}
		if held := s.InMemory(); held != 0 {
			t.Errorf("prefetch %d: %d bytes in memory after an early end", prefetch, held)
		}
	}
}

func TestErrorsEndTheBatches(t *testing.T) {
	s := newSet(&fake{n: 10, bad: 4, size1: 1}, Options{Workers: 3, Memory: 100})
	got, last := 0, error(nil)
	for b, err := range s.Batches(t.Context(), Order{Size: 1}) {
		if last = err; err == nil {
			got += b.N
		}
	}
	if got != 4 || last == nil || last.Error() != "sample is bad" {
		t.Errorf("%d samples, then %v", got, last)
	}
}

func TestBreakStopsReadAhead(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newSet(&fake{n: 1000, bad: -1, size1: 1}, Options{Workers: 4, Memory: 100})
	for range s.Batches(t.Context(), Order{Size: 1}) {
		break
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

func TestContextEndsTheBatches(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newSet(&fake{n: 1000, bad: -1, size1: 1}, Options{Workers: 4, Memory: 10})
	got, last := 0, error(nil)
	for _, err := range s.Batches(ctx, Order{Size: 1}) {
		if last = err; err == nil {
			got++
		}
		cancel()
	}
	if !errors.Is(last, context.Canceled) || got > 20 {
		t.Errorf("%d batches, then %v", got, last)
	}
}

func TestStreamSeeksBack(t *testing.T) {
	content := slices.Repeat([]byte("0123456789"), 100)
	path := file(t, "x.gz", gzipped(content))
	c, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	read := func(off int64) string {
		b := make([]byte, 4)
		if err := ir.ReadFull(c, b, off); err != nil {
			return err.Error()
		}
		return string(b)
	}
	check := func() {
		for _, off := range []int64{0, 500, 504, 3, 996} {
			if got, want := read(off), string(content[off:off+4]); got != want {
				t.Errorf("at %d: %s, want %s", off, got, want)
			}
		}
		for _, off := range []int64{998, 1000, 5000} {
			if got := read(off); got == "" || got[0] != 'p' {
				t.Errorf("at %d: %q, want an early end", off, got)
			}
		}
	}
	check()
	if err := c.ReaderAt.(*stream).saveToFile(t.TempDir(), 1000); err != nil {
		t.Fatal(err)
	}
	check()
}

// held is the memory of batches of n samples, and of data that stay in memory.
func held(s *Set, n, workers int) int64 { return s.opts.Held(s.BatchBytes(n), workers) + s.Resident() }
