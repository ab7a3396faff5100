package onnx

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// An output is a file under a temporary name next to its final one.
type output struct {
	path string
	size int64
	tmp  *os.File
	done bool // renamed
	shut bool // closed

	turn sync.Mutex // see turnFrom

	follow *follower // nil unless the file is digested
	sync   bool      // flush to the disk before it is renamed
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

func create(path string, size int64, o SaveOptions) (*output, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return nil, pathError(path, err)
	}
	out := &output{path: path, size: size, tmp: tmp, sync: o.Sync}
	// Fails at once when the file system has a smaller limit on files; the blocks
	// themselves are taken as they are written.
	if err := errors.Join(tmp.Chmod(0o644), tmp.Truncate(size)); err != nil {
		return nil, errors.Join(out.fail(err), out.discard())
	}
	if o.Digest {
		out.follow = follow(tmp, size)
	}
	return out, nil
}

// fail names the final file, not the temporary one.
func (o *output) fail(err error) error { return pathError(o.path, err) }

func (o *output) writeAt(b []byte, off int64) error {
	if len(b) >= turnFrom {
		o.turn.Lock()
		defer o.turn.Unlock()
	}
	if _, err := o.tmp.WriteAt(b, off); err != nil {
		return o.fail(err)
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
			_ = o.tmp.Sync() // close syncs again and has the error
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

func (o *output) close() error {
	o.ahead.Wait()
	if o.sync {
		if err := o.tmp.Sync(); err != nil {
			return o.fail(err)
		}
	}
	o.shut = true
	if err := o.tmp.Close(); err != nil {
		return o.fail(err)
	}
	return nil
}

func (o *output) rename() error {
	if err := os.Rename(o.tmp.Name(), o.path); err != nil {
		return o.fail(err)
	}
	o.done = true
	return nil
}

// discard removes the temporary file unless it was renamed.
func (o *output) discard() error {
	if o.done {
		return nil
	}
	if o.follow != nil {
		o.follow.abandon()
	}
	o.ahead.Wait()
	var err error
	if !o.shut {
		err = o.tmp.Close()
	}
	return errors.Join(err, os.Remove(o.tmp.Name()))
}
