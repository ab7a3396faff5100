package profile

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/mcompress/mcompress/internal/memory"
)

// A trace is the events of the first steps.
type trace struct {
	steps  []event
	events []event
	ended  bool // the limits are reached
}

// An event is a step, a node or an activity of a step.
type event struct {
	name, op, phase string
	at, took        time.Duration
	alloc, freed    int64
	live            memory.Usage
	node            bool
}

// node adds an event of the current step.
func (t *trace) node(e event) {
	if !t.ended {
		t.events = append(t.events, e)
	}
}

// step ends a step, with its events unless there are too many.
func (t *trace) step(at, took time.Duration, number int) {
	if t.ended {
		return
	}
	t.steps = append(t.steps, event{name: fmt.Sprintf("step %d", number), phase: "step", at: at, took: took})
	t.ended = len(t.steps) == tracedSteps || len(t.events) > tracedEvents
}

// A traceEvent is one event of the Trace Event format.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	TS    float64        `json:"ts"` // microseconds
	Dur   float64        `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// Trace writes the first steps in the Trace Event format of Chrome and Perfetto: complete events of steps, nodes and
// waiting, whose categories are their phases, and counter events of live memory by kind. An operator is the category of
// inference. Processes and threads have names.
func (r *Recorder) Trace(w io.Writer) error {
	events := []traceEvent{
		{Name: "process_name", Phase: "M", PID: 1, Args: map[string]any{"name": "mcompress"}},
		{Name: "thread_name", Phase: "M", PID: 1, TID: 1, Args: map[string]any{"name": "steps"}},
	}
	all := slices.Concat(r.trace.steps, r.trace.events)
	// At equal times a step remains before its nodes, as viewers nest later events in earlier ones.
	slices.SortStableFunc(all, func(a, b event) int { return int(a.at - b.at) })
	var last memory.Usage
	for _, e := range all {
		cat := e.phase
		if cat == "" {
			cat = e.op
		}
		x := traceEvent{Name: e.name, Cat: cat, Phase: "X", TS: micro(e.at), Dur: micro(e.took), PID: 1, TID: 1}
		if e.node {
			x.Args = map[string]any{"op": e.op, "allocated_bytes": e.alloc, "freed_bytes": e.freed}
			if e.live != last {
				events, last = append(events, counter(e)), e.live
			}
		}
		events = append(events, x)
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}

// counter is the live memory at the start of e.
func counter(e event) traceEvent {
	args := map[string]any{}
	for k, n := range e.live {
		args[memory.Kind(k).String()] = n
	}
	return traceEvent{Name: "live memory", Phase: "C", TS: micro(e.at), PID: 1, TID: 1, Args: args}
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
