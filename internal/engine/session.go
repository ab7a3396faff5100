package engine

import (
	"context"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A Session runs one model. There are two implementations, the interpreter and engine/ort's; several goroutines may use
// one session.
type Session interface {
	// Run computes the values named by fetch, or all outputs if it is empty. The caller owns the returned arrays; the
	// arrays of in are only read, except by operators of engine/train that are documented to write them.
	Run(ctx context.Context, in map[string]*ir.Array, fetch []string) (map[string]*ir.Array, error)
	Inputs() []op.Port
	Outputs() []op.Port
	Close() error
}

// Options configure a session. The zero value uses one worker thread.
type Options struct {
	Workers int
	Seed    uint64 // for random operators
	// Limits bound memory and steps: beyond them Open and Run return an error that names the node, before memory is
	// allocated. Weights beyond Limits.Weights are streamed (read in each run).
	Limits   memory.Limits
	Keep     []string // inner values that Run may fetch; they are not fused away
	KeepAll  bool     // Run may fetch every value of the main graph
	PlanOnly bool     // weights are not read: Usage works, Run does not
	NoFusion bool     // no fusions: each node runs separately
	Profile  Profiler // runs every step; may be nil
	Arena    *Arena   // memory of runs that is shared with other sessions; nil for memory of the session's own

	// Store, if set, has or gets the packed weights. It excludes PlanOnly, Identity and Baseline.
	Store *Store

	// Identity, if set, returns the identity of a tensor: tensors of several models with the same identity have the
	// same data; "" means unknown. A session with an Identity can be the baseline of others.
	Identity func(*ir.Tensor) string
	// Baseline, if set, is a session with an Identity that stays open as long as this one: constants are shared with
	// it, and values that both compute from the same inputs become inputs of this one. See BaselineInputs.
	Baseline *Interpreter
}

// A Profiler runs the steps of a run: it calls each one once, and may measure the time.
type Profiler interface {
	Step(e Event, run func() error) error
}

// An Event is one execution of one node.
type Event struct {
	Node, Op string
	Index    int   // of the step in Usage.Steps; negative in subgraphs
	Alloc    int64 // bytes of values and scratch memory whose lifetime starts with the step
	Freed    int64 // bytes of those whose lifetime ends with it
	Dynamic  int64 // bytes of values outside the arena before the step, whose sizes are known at run time only
	Stale    int64 // bytes of those that no step reads any more since before the last one
}
