package registry

import (
	"context"
	"io"
	"sync"
)

// A meter counts the bytes of a transfer. It may be used by several goroutines.
type meter struct {
	mu          sync.Mutex
	done, total int64
	show        func(done, total int64)
}

func newMeter(total int64, show func(done, total int64)) *meter {
	return &meter{total: total, show: show}
}

// add counts n bytes, which are negative if they have to be transferred again.
func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
	if m.show != nil && n != 0 {
		m.show(m.done, m.total)
	}
}

// Write counts the bytes.
func (m *meter) Write(b []byte) (int, error) {
	m.add(int64(len(b)))
	return len(b), nil
}

// reader returns r that counts its bytes and returns the error of ctx soon after ctx ends.
func (m *meter) reader(ctx context.Context, r io.Reader) io.Reader { return &metered{ctx, r, m} }

type metered struct {
	ctx context.Context
	r   io.Reader
	m   *meter
}

// Read reads, counts and checks the context.
func (r *metered) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.m.add(int64(n))
	return n, err
}
