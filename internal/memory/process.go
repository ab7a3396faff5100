package memory

import "runtime/metrics"

// A Process is the memory of this process now, in bytes.
type Process struct {
	Program  int64 // of mapped programs and libraries, whether resident or not: more of it becomes resident over time
	Resident int64 // other resident memory: the Go runtime and its heap, C libraries
	Go       int64 // that the Go runtime has from the system
}

// Total is what the process has, or will have once all of its program is resident.
func (p Process) Total() int64 { return p.Program + p.Resident }

// goMemory is the memory that the Go runtime counts towards its limit.
func goMemory() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// Sizes of the parts of a process that trains, besides its arrays.
const (
	programBytes = 32 << 20 // code and constants of mcompress
	runtimeBytes = 12 << 20 // the Go runtime with its stacks, metadata and an empty heap
	nodeBytes    = 24 << 10 // of a node of the model: the model, the graphs of training, their plans
	threadBytes  = 1 << 20  // of a worker thread: its stack, and caches of the heap
	programGrain = 16 << 20
)

// ProgramSize is the memory of the program for models of this number of nodes, in bytes. It does not depend on the
// machine, so that what is chosen by it does not either.
func ProgramSize(nodes int) int64 { return programBytes + runtimeBytes + int64(nodes)*nodeBytes }

// Threads is the memory of n worker threads besides the first.
func Threads(n int) int64 { return int64(max(0, n-1)) * threadBytes }

// ProgramOf is ProgramSize, or the measured size of a process that is larger, because it also does other things: in a
// coarse grain, so that it is the same in each run.
func ProgramOf(nodes int, measured int64) int64 {
	n := ProgramSize(nodes)
	if measured <= n {
		return n
	}
	return (measured + programGrain - 1) / programGrain * programGrain
}

// Headroom is the memory for garbage of a process whose arrays have this many bytes, of which transient ones are
// allocated and dropped between two steps. The Go runtime has a limit, and collects garbage when the heap gets near it:
// it keeps 3 % of the heap free below it, and one allocation may exceed it.
func Headroom(arrays, transient int64) int64 { return arrays/32 + 2*transient + fixedHeadroom }

const fixedHeadroom = 4 << 20
