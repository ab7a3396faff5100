package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"sync"

	"github.com/mcompress/mcompress/ir"
)

// A follower digests a file while it is being written: it reads as far as everything
// from the start on is there. The file's bytes are then still in the system's cache,
// and another core is free for them.
type follower struct {
	mu      sync.Mutex
	more    *sync.Cond
	ready   int64           // all bytes below it are written
	pending map[int64]int64 // ends of written stretches beyond ready, by start
	stop    bool

	sum  string
	err  error
	done sync.WaitGroup
}

// errStopped ends the digest of a file that is given up.
var errStopped = errors.New("the file was given up")

// follow starts digesting the size bytes of r.
func follow(r io.ReaderAt, size int64) *follower {
	f := &follower{pending: map[int64]int64{}}
	f.more = sync.NewCond(&f.mu)
	f.done.Go(func() { f.sum, f.err = f.digest(r, size) })
	return f
}

// wrote notes that the n bytes at off are in the file.
func (f *follower) wrote(off, n int64) {
	if n == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending[off] = off + n
	// Stretches are written in any order by several workers; each that is next makes those after it ready.
	for end, ok := f.pending[f.ready]; ok; end, ok = f.pending[f.ready] {
		delete(f.pending, f.ready)
		f.ready = end
		f.more.Signal()
	}
}

func (f *follower) digest(r io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	buf := make([]byte, min(size, ir.CopyBuffer))
	for off := int64(0); off < size; {
		end, err := f.await(off)
		if err != nil {
			return "", err
		}
		for off < end {
			b := buf[:min(end-off, int64(len(buf)))]
			if err := ir.ReadFull(r, b, off); err != nil {
				return "", err
			}
			h.Write(b)
			off += int64(len(b))
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// await waits until there is something to read from off on, and returns its end.
func (f *follower) await(off int64) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.ready <= off && !f.stop {
		f.more.Wait()
	}
	if f.stop {
		return 0, errStopped
	}
	return f.ready, nil
}

// finish waits for the digest.
func (f *follower) finish() (string, error) {
	f.done.Wait()
	return f.sum, f.err
}

// abandon ends the digest early.
func (f *follower) abandon() {
	f.mu.Lock()
	f.stop = true
	f.more.Signal()
	f.mu.Unlock()
	f.done.Wait()
}
