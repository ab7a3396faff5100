package remote

import (
	"slices"
	"sync"
)

// Read-ahead: segments of files are requested before they are read, ahead of a reader by depth of them, in buffers of
// the process, which all files have in common.
const (
	segment     = 2 << 20
	bufferCount = 6 // of buffers
	depth       = 2
)

// stale is the number of reads of the pool after which a segment that was not read on is given up.
const stale = 256

// buffers are the segments of files in memory.
type buffers struct {
	mu        sync.Mutex
	allocated int
	free      [][]byte
	segments  []*segmentOf
	readCount int64
}

// pool are the buffers of this process: memory does not grow with the number or size of files.
var pool = sync.OnceValue(func() *buffers { return &buffers{} })

// A segmentOf is a range of a file in a buffer.
type segmentOf struct {
	file     *File
	off, end int64
	buffer   []byte
	ready    chan struct{} // closed when the buffer has the bytes, or err is set
	err      error

	// Under the mutex of buffers:
	readers int
	left    int64 // bytes that were not read
	last    int64 // the count of reads at the last one
	dropped bool
}

// readSegment copies bytes from the segment that has the one at off; ok is false if there is none.
func (b *buffers) readSegment(f *File, p []byte, off int64) (n int, ok bool, err error) {
	b.mu.Lock()
	b.readCount++
	i := slices.IndexFunc(b.segments, func(s *segmentOf) bool { return s.file == f && s.off <= off && off < s.end })
	if i < 0 {
		b.mu.Unlock()
		return 0, false, nil
	}
	s := b.segments[i]
	// Counted under the lock before it is released: else the buffer could be given to another segment while this reader
	// waits.
	s.readers, s.last = s.readers+1, b.readCount
	b.continued(s)
	b.mu.Unlock()
	<-s.ready
	if s.err == nil {
		n = copy(p, s.buffer[off-s.off:s.end-s.off])
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.readers--
	s.left -= int64(n)
	// A segment with an error is dropped, so that the next read requests it again.
	if s.left <= 0 || s.err != nil {
		s.dropped = true
	}
	b.release(s)
	return n, true, s.err
}

// ahead starts to read the segment at off, and reads from it; ok is false if no buffer is free.
func (b *buffers) ahead(f *File, p []byte, off, bound int64) (n int, ok bool, err error) {
	b.mu.Lock()
	s := b.start(f, off, bound)
	b.mu.Unlock()
	if s == nil {
		return 0, false, nil
	}
	return b.readSegment(f, p, off)
}

// continued starts to read the segments after s, whose reader is expected to go on to the end of the payload.
func (b *buffers) continued(s *segmentOf) {
	bound := s.file.bound(s.off)
	// No further than depth, so that other readers get buffers, too.
	for off, i := s.end, 0; off < bound && i < depth; off, i = off+segment, i+1 {
		if slices.ContainsFunc(
			b.segments,
			func(o *segmentOf) bool { return o.file == s.file && o.off <= off && off < o.end },
		) {
			continue
		}
		if b.start(s.file, off, bound) == nil {
			return
		}
	}
}

// start requests the segment at off; nil if no buffer is free.
func (b *buffers) start(f *File, off, bound int64) *segmentOf {
	buffer := b.takeBuffer()
	if buffer == nil {
		return nil
	}
	// The goroutine below is a reader until it has the bytes, so that a segment that is dropped meanwhile keeps its
	// buffer.
	s := &segmentOf{
		file:    f,
		off:     off,
		end:     min(off+segment, bound),
		buffer:  buffer,
		ready:   make(chan struct{}),
		readers: 1,
		last:    b.readCount,
	}
	s.left = s.end - s.off
	b.segments = append(b.segments, s)
	go func() {
		err := f.fetch(buffer[:s.end-s.off], s.off)
		b.mu.Lock()
		defer b.mu.Unlock()
		s.err = err
		s.readers--
		b.release(s)
		close(s.ready)
	}()
	return s
}

// takeBuffer returns a free buffer, or that of a segment whose reader does not continue; nil if there is none.
func (b *buffers) takeBuffer() []byte {
	if len(b.free) == 0 && b.allocated < bufferCount {
		b.allocated++
		return make([]byte, segment)
	}
	if len(b.free) == 0 {
		for _, s := range b.segments {
			if s.readers == 0 && b.readCount-s.last > stale {
				s.dropped = true
				b.release(s)
				break
			}
		}
	}
	if len(b.free) == 0 {
		return nil
	}
	last := len(b.free) - 1
	buffer := b.free[last]
	b.free = b.free[:last]
	return buffer
}

// release frees the buffer of a segment that is dropped and has no readers.
func (b *buffers) release(s *segmentOf) {
	i := slices.Index(b.segments, s)
	if !s.dropped || s.readers > 0 || i < 0 {
		return
	}
	b.segments = slices.Delete(b.segments, i, i+1)
	b.free = append(b.free, s.buffer)
	s.buffer = nil
}

// drop gives up the segments of a file that is closed.
func (b *buffers) drop(f *File) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range slices.Clone(b.segments) {
		if s.file == f {
			s.dropped = true
			b.release(s)
		}
	}
}
