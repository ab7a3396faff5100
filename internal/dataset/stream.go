package dataset

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// A stream is random access to sequential data: a read after the last one continues there, any other restarts from the
// beginning. After keep all reads are fast.
type stream struct {
	open  func() (io.ReadCloser, error)
	under io.Closer // closed with the stream; nil if not owned

	mu    sync.Mutex
	now   io.ReadCloser
	at    int64
	saved *spool
}

// ReadAt implements io.ReaderAt; its error is io.EOF at the end of the stream.
func (s *stream) ReadAt(b []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved != nil {
		return s.saved.ReadAt(b, off)
	}
	if err := s.seek(off); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(s.now, b)
	s.at += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

func (s *stream) seek(off int64) error {
	if s.now != nil && s.at > off {
		// Decompression cannot go back: it starts again.
		s.now.Close()
		s.now = nil
	}
	if s.now == nil {
		r, err := s.open()
		if err != nil {
			return err
		}
		s.now, s.at = r, 0
	}
	n, err := io.CopyN(io.Discard, s.now, off-s.at)
	s.at += n
	return err
}

// saveToFile decompresses the first end bytes to a temporary file and reads from it afterwards.
func (s *stream) saveToFile(dir string, end int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved != nil {
		return nil
	}
	if err := s.seek(0); err != nil {
		return err
	}
	to, err := newSpool(dir)
	if err != nil {
		return err
	}
	n, err := io.CopyN(to, s.now, end)
	s.at += n
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("it ends %d bytes early: %w", end-n, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return errors.Join(err, to.Close())
	}
	s.saved = to
	return nil
}

// Close closes the reader, the temporary file and the underlying file.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.now != nil {
		errs = append(errs, s.now.Close())
		s.now = nil
	}
	if s.saved != nil {
		errs = append(errs, s.saved.Close())
	}
	if s.under != nil {
		errs = append(errs, s.under.Close())
	}
	return errors.Join(errs...)
}

// A spool is a temporary file that Close removes.
type spool struct{ *os.File }

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, ".mcompress-spool-*")
	if err != nil {
		return nil, err
	}
	// Unlinked at once where the system allows it, so that it is removed even if the process is killed.
	_ = os.Remove(f.Name())
	return &spool{f}, nil
}

// Close closes the file and removes it if it is not unlinked yet.
func (s *spool) Close() error {
	err := s.File.Close()
	if gone := os.Remove(s.Name()); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
