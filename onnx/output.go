package onnx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/ir"
)

// An output is a file under a temporary name.
type output struct {
	*atomicfile.File
	size   int64
	unit   string // of a journal, which has the file; empty without one
	state  state
	result []*io.SectionReader // the result of the unit, if another run or process wrote the file
	begun  string              // the path at which a journal keeps a file that is not complete, and
	kept   string              // the one at which it keeps it then; empty without one

	inline []gap // in the model file, for payloads that are computed with those of a data file

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

// A state is by which process a file is written.
type state int

const (
	stateHere      state = iota // this process
	stateWritten                // another one, or an interrupted run
	stateElsewhere              // another process, later: the file has zeros
)

// create creates the files of p for the name path, and the data files before the model: that never refers to data that
// are not there.
func (w *writer) create(ctx context.Context, set *atomicfile.Set, p *Plan, path string) (files []*output, err error) {
	paths, sizes := p.Paths(path), p.Sizes()
	mine := ir.Mine(w.o.Journal, sizes[1:])
	for i := len(paths) - 1; i >= 0; i-- {
		f := &output{size: sizes[i], sync: set.Sync}
		if w.o.Journal != nil {
			f.unit = fmt.Sprintf("%s.%d", w.layout, i)
		}
		if i > 0 && !mine[i-1] {
			f.state = stateElsewhere
		}
		files = slices.Insert(files, 0, f)
		if err := f.open(ctx, set, paths[i], w.o); err != nil {
			return files, err
		}
	}
	return files, nil
}

// open opens the file, whose content a journal keeps for other runs and processes.
func (o *output) open(ctx context.Context, set *atomicfile.Set, path string, s SaveOptions) (err error) {
	if s.Journal != nil {
		if o.kept, err = s.Journal.File(ctx, o.unit); err != nil {
			return err
		}
		// The result was recorded, but the file may have been lost, or not been renamed yet: then it is written
		// again.
		st, err := os.Stat(o.kept)
		if parts, ok := s.Journal.Result(o.unit); ok && err == nil && st.Size() == o.size {
			o.result, o.state = parts, stateWritten
		}
	}
	switch {
	case o.state == stateWritten:
		o.File, err = set.CreateKept(path, o.kept)
	case o.kept == "" || o.state == stateElsewhere:
		o.File, err = set.Create(path)
	default:
		if o.begun, err = s.Journal.File(ctx, o.unit+".begun"); err == nil {
			o.File, err = set.CreateKept(path, o.begun)
		}
	}
	if err != nil {
		return err
	}
	if o.state == stateWritten {
		return o.Fail(o.copyFrom(ctx, o.kept))
	}
	// Fails at once when the file system has a smaller limit on files; the blocks
	// themselves are taken as they are written.
	if err := o.Fail(o.Truncate(o.size)); err != nil {
		return err
	}
	if s.Digest && o.state == stateHere {
		o.follow = follow(o.File.File, o.size)
	}
	return nil
}

// writeInline writes the inline payloads of a file that is written.
func (o *output) writeInline() error {
	at := int64(0)
	for _, g := range o.inline {
		b := make([]byte, g.part.n)
		if err := ir.ReadFull(o.result[1], b, at); err != nil {
			return err
		}
		if err := g.file.writeAt(b, g.off); err != nil {
			return err
		}
		at += g.part.n
	}
	return nil
}

// readInline reads the inline payloads from the model file.
func (o *output) readInline() ([]byte, error) {
	var all []byte
	for _, g := range o.inline {
		b := make([]byte, g.part.n)
		if err := ir.ReadFull(g.file, b, g.off); err != nil {
			return nil, g.file.Fail(err)
		}
		all = append(all, b...)
	}
	return all, nil
}

// copyFrom copies the content of a file that is written, unless o is that file.
func (o *output) copyFrom(ctx context.Context, path string) (err error) {
	st, err := o.Stat()
	if err != nil || st.Size() == o.size {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return ir.Copy(ctx, o.File, in, o.size)
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
	if o.dirty.Add(n) >= flushAhead {
		o.flush()
	}
}

// flush starts flushing what is written so far, unless that is going on.
func (o *output) flush() {
	if o.sync && o.busy.CompareAndSwap(false, true) {
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
	// Before Close: Sync of a closed file fails.
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
