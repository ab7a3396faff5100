package onnx

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/mcompress/mcompress/internal/atomicfile"
)

// An output is a file under a temporary name.
type output struct {
	*atomicfile.File
	size int64

	turn sync.Mutex // see turnFrom

	follow *follower // nil unless the file is digested
	sync   bool      // flush to the disk
	dirty  atomic.Int64
	ahead  sync.WaitGroup
	busy   atomic.Bool // ahead is flushing
}

// turnFrom is the size from which workers take turns at writing. Linux lets one write
// into a file at a time, and a writer that waits in the kernel uses a core that the other worker
// needs; a short write is over before waiting here would pay.
const turnFrom = 512 << 10

// flushAhead is the number of bytes that are written before a flush starts: what is left to
// flush at the end is then little.
const flushAhead = 128 << 20

// create creates the file of a layout at path. With a journal it is kept for the next run of the same layout.
func create(ctx context.Context, set *atomicfile.Set, path string, size int64, layout string, o SaveOptions) (_ *output, err error) {
	out := &output{size: size, sync: set.Sync}
	if o.Journal != nil {
		kept := ""
		if kept, err = o.Journal.File(ctx, layout+"."+filepath.Base(path)); err == nil {
			out.File, err = set.CreateKept(path, kept)
		}
	} else {
		out.File, err = set.Create(path)
	}
	if err != nil {
		return nil, err
	}
	// Fails at once when the file system has a smaller limit on files; the blocks
	// themselves are taken as they are written.
	if err := out.Fail(out.Truncate(size)); err != nil {
		return nil, err
	}
	if o.Digest {
		out.follow = follow(out.File.File, size)
	}
	return out, nil
}

func (o *output) writeAt(b []byte, off int64) error {
	if len(b) >= turnFrom {
		o.turn.Lock()
		defer o.turn.Unlock()
	}
	if _, err := o.WriteAt(b, off); err != nil {
		return o.Fail(err)
	}
	o.wrote(off, int64(len(b)))
	return nil
}

// wrote records that n bytes at off are in the file.
func (o *output) wrote(off, n int64) {
	if o.follow != nil {
		o.follow.wrote(off, n)
	}
	if o.sync && o.dirty.Add(n) >= flushAhead && o.busy.CompareAndSwap(false, true) {
		o.dirty.Store(0)
		o.ahead.Go(func() {
			_ = o.Sync() // Close syncs again and has the error
			o.busy.Store(false)
		})
	}
}

// digest is the file's SHA-256, empty unless requested.
func (o *output) digest() (string, error) {
	if o.follow == nil {
		return "", nil
	}
	return o.follow.finish()
}

// seal digests, flushes and closes the file.
func (o *output) seal() (Written, error) {
	sum, err := o.digest()
	if err != nil {
		return Written{}, o.Fail(err)
	}
	o.ahead.Wait()
	return Written{Name: filepath.Base(o.Path), Size: o.size, SHA256: sum}, o.Close()
}

// abandon ends the goroutines of a file that is not sealed.
func (o *output) abandon() {
	if o.follow != nil {
		o.follow.abandon()
	}
	o.ahead.Wait()
}
