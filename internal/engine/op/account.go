package op

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// An Account counts the memory of one session: weights, the arenas of runs, and values outside of them. Memory is
// counted before it is allocated. Several goroutines may use it; nil has no limit.
type Account struct {
	limit   int64
	held    atomic.Int64
	reclaim func() // releases memory that is kept for later runs only
}

// NewAccount returns an account with a limit in bytes. reclaim is called where the limit would be exceeded otherwise.
func NewAccount(limit int64, reclaim func()) *Account {
	return &Account{limit: limit, reclaim: reclaim}
}

// Take counts n more bytes, or is a *MemoryError.
func (a *Account) Take(n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	if err := a.Check(n); err != nil {
		return err
	}
	a.held.Add(n)
	return nil
}

// Check is a *MemoryError if n more bytes exceed the limit, or what the process can get.
func (a *Account) Check(n int64) error {
	if a == nil || n <= a.limit-a.held.Load() && memory.Within(a.limit, n) && memory.Enough(n) {
		return nil
	}
	// Idle arenas first, as they save time only.
	a.reclaim()
	held := a.held.Load()
	if n > a.limit-held {
		return &MemoryError{Need: n, Held: held, Limit: a.limit}
	}
	// Values that grow leave those before them as garbage, and one large allocation does not wait for the collector: the
	// process would hold a multiple of the limit.
	if memory.Within(a.limit, n) && memory.Enough(n) {
		return nil
	}
	// After a garbage collection: the runtime may hold much that nothing uses.
	if left := memory.Collect(); n > left {
		return &MemoryError{Need: n, Held: held, Limit: a.limit, Short: true, Left: left}
	}
	return nil
}

// Release discounts n bytes.
func (a *Account) Release(n int64) {
	if a != nil {
		a.held.Add(-n)
	}
}

// Held is the number of counted bytes.
func (a *Account) Held() int64 { return a.held.Load() }

// A MemoryError is a need for more memory than the limit. It is returned before the memory is allocated.
type MemoryError struct {
	Need, Held, Limit int64
	Short             bool  // the need is within the limit, but the process cannot get it
	Left              int64 // what the process can get if Short
}

// Error names the sizes.
func (e *MemoryError) Error() string {
	need, limit := "needs "+size(e.Need), "the memory limit of the run is "+size(e.Limit)
	if e.Held > 0 {
		need += " in addition to " + size(e.Held) + " in use"
	}
	if e.Short {
		limit = "the process can get " + size(e.Left)
	}
	return need + ", " + limit
}

func size(n int64) string { return humanize.IBytes(uint64(n)) }

// The sizes of an element of a String tensor without its text, and of an array without its data.
const (
	textHeader  = 16
	arrayHeader = 256
)

// Size is the number of bytes of a new tensor of type s, which is valid; of strings without their text.
func Size(s ir.Spec) int64 {
	if s.DType == ir.String {
		return textHeader * s.Elems()
	}
	return s.Bytes()
}

// Held is the memory of a, its items and texts. What several values share is counted for each.
func Held(a *ir.Array) int64 {
	if a == nil {
		return 0
	}
	n := Plus(int64(len(a.Data))+arrayHeader, Held(a.Keys))
	for _, s := range a.Text {
		n = Plus(n, int64(len(s))+textHeader)
	}
	for _, item := range a.Items {
		n = Plus(n, Held(item))
	}
	return n
}

// Plus is the sum of two sizes, or the largest size.
func Plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// maxEmpty bounds the other dimensions of a tensor without elements: operators may loop over them.
const maxEmpty = 1 << 30

// Valid is an error for a type whose size cannot be computed with.
func Valid(s ir.Spec) error {
	if err := s.Valid(); err != nil {
		return err
	}
	n := int64(1)
	for _, d := range s.Shape {
		n *= max(d, 1) // does not overflow: it is checked for each axis
		if n > maxEmpty && s.Elems() == 0 {
			return fmt.Errorf("shape %v without elements has too large dimensions", s.Shape)
		}
	}
	return nil
}
