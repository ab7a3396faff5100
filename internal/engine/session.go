package engine

import (
	"context"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A Session runs one model. The interpreter and engine/ort's are two; both may be used
// by several goroutines at once.
type Session interface {
	// Run computes the values named by fetch, or all outputs if it is empty. The arrays it
	// returns are the caller's; those in in are only read, but by operators of engine/train
	// that say they write them.
	Run(ctx context.Context, in map[string]*ir.Array, fetch []string) (map[string]*ir.Array, error)
	Inputs() []op.Port
	Outputs() []op.Port
	Close() error
}

// Options say how a model is run. The zero value uses one worker.
type Options struct {
	Workers int
	Seed    uint64 // for operators that draw random numbers
	// Bytes for weights and activations, 0 for no limit. Weights beyond half of it are read for each run; results whose
	// size only the run tells are an error beyond it.
	MemoryLimit int64
	Keep        []string // values inside the graph that Run may fetch; they are not fused away
	KeepAll     bool     // Run may fetch every value of the main graph
	PlanOnly    bool     // weights are not read: there is Usage, but no Run
	Plain       bool     // no fusions: each node runs as it stands
	Profile     Profiler // runs every step; may be nil

	// Identity, where set, names a tensor: those of the same name in several models hold the same; "" says nothing. Sessions that it is given
	// to can be opened beside one another.
	Identity func(*ir.Tensor) string
	// Beside, where set, is a session with an Identity, open as long as this one: what it holds is not held again, and what it computes
	// alike from the same inputs is an input of this one. See Given.
	Beside *Interpreter
}

// A Profiler runs the steps of a run: it calls each one once, and may take the time.
type Profiler interface {
	Step(e Event, run func() error) error
}

// An Event is one execution of one node.
type Event struct {
	Node, Op string
	Alloc    int64 // bytes of values and scratch that begin to live with the step
	Freed    int64 // bytes of those that end with it
}
