package oracle

import (
	"fmt"
	"testing"
	"time"
)

// failures records the errors of a check.
type failures struct {
	testing.TB
	list []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

var kept []byte

// Memory that is freed meanwhile counts, and only what is slow each time is an error.
func TestBound(t *testing.T) {
	calls := 0
	for name, c := range map[string]struct {
		decode func()
		want   int // errors
	}{
		"nothing":          {func() {}, 0},
		"within the bound": {func() { kept = make([]byte, 3<<20) }, 0},
		"much memory": {func() {
			for range 10 {
				kept = make([]byte, 1<<20)
			}
		}, 1},
		"slow once": {func() {
			if calls++; calls == 1 {
				time.Sleep(50 * time.Millisecond)
			}
		}, 0},
		"slow": {func() { time.Sleep(50 * time.Millisecond) }, 1},
	} {
		f := &failures{TB: t}
		Bound{Memory: 1 << 20, MemoryPerByte: 1 << 10, Time: 20 * time.Millisecond, TimePerByte: time.Nanosecond}.Check(f, 4<<10, c.decode)
		if len(f.list) != c.want {
			t.Errorf("%s: %q", name, f.list)
		}
	}
}
