package bounded

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	"github.com/dustin/go-humanize"
)

// An Error is a text, file or structure that exceeds a limit. Repeating the run does not help.
type Error struct{ Text string }

// Error returns the limit that is exceeded.
func (e *Error) Error() string { return e.Text }

func errorf(format string, args ...any) *Error { return &Error{fmt.Sprintf(format, args...)} }

// limit is the memory limit of the process in bytes; 0 if the program has set none.
var limit atomic.Int64

// Limits of memory where the program has set none, and for smaller ones: a limit for weights may be a few KiB.
const (
	defaultMemory = 256 << 20
	minMemory     = 64 << 20
)

// SetMemory sets the limit of the memory that one text and its values take, that of --memory-limit. It is a limit of the
// process, as that of the Go runtime is: memory has no other owner.
func SetMemory(bytes int64) { limit.Store(bytes) }

// Memory is the limit of SetMemory; without one it is that of the Go runtime, and 256 MiB without that.
func Memory() int64 {
	n := limit.Load()
	if n == 0 {
		if n = debug.SetMemoryLimit(-1); n == math.MaxInt64 {
			n = defaultMemory
		}
	}
	return max(n, minMemory)
}

// A Budget is the rest of the memory that a reader may take.
type Budget struct{ left int64 }

// NewBudget returns a budget of the memory limit.
func NewBudget() *Budget { return &Budget{Memory()} }

// Take charges bytes before they are allocated. It returns an *Error when the memory limit is exceeded.
func (b *Budget) Take(bytes int64) error {
	if b.left -= bytes; b.left < 0 {
		return errorf("it takes more memory than the limit of %s; raise --memory-limit if it is not malformed",
			humanize.IBytes(uint64(Memory())))
	}
	return nil
}

// Read reads a text of at most limit bytes, and of no more than the memory limit.
func Read(r io.Reader, limit int64) ([]byte, error) {
	memory := Memory()
	text, err := io.ReadAll(io.LimitReader(r, min(limit, memory)+1))
	switch size := int64(len(text)); {
	case err != nil:
		return nil, err
	case size > limit:
		return nil, errorf("more than %s", humanize.IBytes(uint64(limit)))
	case size > memory:
		return nil, errorf("more than the memory limit of %s; raise --memory-limit", humanize.IBytes(uint64(memory)))
	}
	return text, nil
}

// ReadFile reads a file of at most limit bytes, also a pipe, for a path that the user has named.
func ReadFile(path string, limit int64) ([]byte, error) { return readFile(os.Open, path, limit) }

// ReadRegular is ReadFile for a path that is found or that text from elsewhere names: a pipe that nobody writes would
// never end, and a device neither.
func ReadRegular(path string, limit int64) ([]byte, error) { return readFile(Open, path, limit) }

func readFile(open func(string) (*os.File, error), path string, limit int64) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := Read(f, limit)
	if e := (*Error)(nil); errors.As(err, &e) {
		return nil, errorf("%s: %s", path, e.Text)
	}
	return text, err
}

// Open opens a regular file. Another kind of file is an *Error.
func Open(path string) (*os.File, error) {
	// Without O_NONBLOCK, opening a pipe waits for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errorf("%s: not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
