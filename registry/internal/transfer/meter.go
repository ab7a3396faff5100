package transfer

import (
	"context"
	"io"
	"sync"
)

// A Meter counts the bytes of a transfer. It may be used by several goroutines.
type Meter struct {
	mu          sync.Mutex
	done, total int64
	show        func(done, total int64)
}

// NewMeter returns a meter of total bytes that calls show, which may be nil.
func NewMeter(total int64, show func(done, total int64)) *Meter {
	return &Meter{total: total, show: show}
}

// Add counts n bytes, which are negative if they have to be transferred again.
func (m *Meter) Add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
	if m.show != nil && n != 0 {
		m.show(m.done, m.total)
	}
}

// Write counts the bytes.
func (m *Meter) Write(b []byte) (int, error) {
	m.Add(int64(len(b)))
	return len(b), nil
}

// Reader returns r that counts its bytes and returns the error of ctx soon after ctx ends.
func (m *Meter) Reader(ctx context.Context, r io.Reader) io.Reader { return &metered{ctx, r, m} }

type metered struct {
	ctx context.Context
	r   io.Reader
	m   *Meter
}

// Read reads, counts and checks the context.
func (r *metered) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.m.Add(int64(n))
	return n, err
}
