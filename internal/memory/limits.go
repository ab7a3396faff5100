package memory

import "runtime/debug"

// Limits bound the runs of a model. The zero value is valid.
type Limits struct {
	Weights int64 // bytes of weights in memory, the others are streamed; 0 for half of Memory, or all if that is 0 too
	Memory  int64 // bytes of weights and values of one session; 0 for DefaultLimit
	Fixed   bool  // Memory follows from a limit that was given: it is not raised
	Steps   int64 // steps of one run; 0 for DefaultSteps
}

// DefaultSteps is the default of Limits.Steps: seconds of short steps, each of about a microsecond. A forward pass has
// hundreds to thousands, a decoding loop hundreds of thousands.
const DefaultSteps = 2_000_000

// LimitsOf are the limits of a session under a memory limit of the program, and a maximum number of steps. A limit that
// is not given is a default that bounds weights only. The weights of two sessions use half of it.
func LimitsOf(bytes int64, given bool, steps int64) Limits {
	l := Limits{Weights: max(1, bytes/4), Steps: steps}
	if given {
		l.Memory, l.Fixed = max(1, bytes), true
	}
	return l
}

// Half are the limits of each of two sessions that are open at the same time.
func (l Limits) Half() Limits {
	if l.Memory == 0 {
		l.Memory = DefaultLimit()
	}
	l.Memory = max(1, l.Memory/2)
	return l
}

// Resolved are the limits with defaults filled in; memory that the process cannot get is not part of them.
func (l Limits) Resolved() Limits {
	if l.Weights == 0 && l.Memory > 0 {
		l.Weights = max(1, l.Memory/2)
	}
	if l.Memory == 0 {
		l.Memory = DefaultLimit()
	} else {
		l.Memory = min(l.Memory, available())
	}
	if l.Steps == 0 {
		l.Steps = DefaultSteps
	}
	return l
}

// DefaultLimit is half of the memory that the process can still get: the garbage collector frees memory late.
func DefaultLimit() int64 { return max(1, available()/2) }

// large is the size of an allocation that is compared with the memory of the process. For smaller ones the garbage
// collector runs often enough.
const large = 16 << 20

// Enough reports whether the process can get n more bytes, and three times as many for garbage. It is fast, and true
// for small n.
func Enough(n int64) bool { return n < large || n <= available()/4 }

// Within reports whether the process stays below a limit with n more bytes, garbage included. It is fast, and true for
// small n.
func Within(limit, n int64) bool { return n < large || n <= limit-goMemory() }

// Collect frees garbage and returns the number of bytes that the process can still get. The Go runtime ends a process
// that cannot get memory, and does not collect garbage before: values that grow in a loop leave several times their
// size.
func Collect() int64 {
	debug.FreeOSMemory()
	return available()
}
