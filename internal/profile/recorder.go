package profile

import (
	"runtime"
	"sync"
	"time"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
)

// Phases of a step besides those of training graphs.
const (
	Waiting = "waiting for samples"
	Teacher = "teacher"
	Outside = "outside of nodes" // inputs and outputs of graphs, augmentation, observers
)

// tracedSteps and tracedEvents are the maximum numbers of steps and events of a trace, which bound its memory and file.
const (
	tracedSteps  = 8
	tracedEvents = 200_000
)

// A Recorder measures steps, one at a time: Begin and End enclose one, and in between sessions run the nodes of their
// graphs. Other goroutines may call Live.
type Recorder struct {
	start    time.Time
	sessions []*session
	steps    int
	total    time.Duration
	rows     map[rowKey]*sums
	nodes    map[nodeKey]*sums
	trace    trace
	growth   Samples

	began  time.Time       // of the current step
	nested []time.Duration // of the running nodes: the time of nodes within them

	stale int64 // bytes of values outside arenas after their last use, times nodes

	mu      sync.Mutex   // of the next fields, which Live reads
	done    int          // steps
	static  memory.Usage // held during all steps
	samples func() int64 // bytes in memory; may be nil
	now     memory.Usage // of the arena, at the running node
	most    memory.Usage // of the arena, at the largest total since the last call of Live
}

type rowKey struct{ op, phase string }

type nodeKey struct{ node, op, phase string }

// sums are those of an operator or a node over all steps.
type sums struct {
	calls        int64
	time         time.Duration // without nodes of subgraphs
	alloc, freed int64
}

// New returns a recorder. After some of the steps it collects garbage and measures what is left.
func New() *Recorder {
	r := &Recorder{start: time.Now()}
	r.Reset()
	return r
}

// Reset forgets the steps so far, which were for warming up.
func (r *Recorder) Reset() {
	r.steps, r.total, r.rows, r.nodes, r.trace, r.growth, r.stale = 0, 0, map[rowKey]*sums{}, map[nodeKey]*sums{},
		trace{}, Samples{}, 0
}

// Samples sets the function that returns the bytes of samples in memory, which Live calls.
func (r *Recorder) Samples(bytes func() int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = bytes
}

// Hold counts bytes of a kind that exist during all steps.
func (r *Recorder) Hold(kind memory.Kind, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.static[kind] += bytes
}

// Begin begins a step.
func (r *Recorder) Begin() {
	if r != nil {
		r.began = time.Now()
	}
}

// End ends a step.
func (r *Recorder) End() {
	if r == nil {
		return
	}
	took := time.Since(r.began)
	r.mu.Lock()
	r.done++
	// Between steps the arena is empty.
	r.now = memory.Usage{}
	r.mu.Unlock()
	r.steps++
	r.total += took
	r.trace.step(r.began.Sub(r.start), took, r.steps)
	if r.growth.Due(r.steps) {
		// Garbage would hide what is still in use. The time of the step is taken already.
		runtime.GC()
		r.growth.Add(r.leakQuantities()...)
	}
}

// Spent adds an activity of the current step, outside of all graphs, that ends now.
func (r *Recorder) Spent(phase string, took time.Duration) {
	if r == nil {
		return
	}
	add(r.rows, rowKey{phase: phase}, sums{1, took, 0, 0})
	r.trace.node(event{name: phase, phase: phase, at: time.Since(r.start) - took, took: took})
}

// A session is the profiler of one graph.
type session struct {
	*Recorder
	model  *engine.Interpreter
	phase  func(value string) string // nil for inference
	plan   *plan                     // nil if it is not known
	phases []string                  // by step of the plan
}

// Attach measures the later runs of a session. u is their plan, nil if it is not known; phase returns the phase of the
// node that computes a value, of any node for "", and is nil for inference.
func (r *Recorder) Attach(model *engine.Interpreter, u *engine.Usage, phase func(value string) string) (err error) {
	s := &session{Recorder: r, model: model, phase: phase}
	r.sessions = append(r.sessions, s)
	model.Observe(s)
	if u == nil {
		return nil
	}
	for _, st := range u.Steps {
		of := ""
		for _, out := range st.Out {
			of = s.phaseOf(out.Name)
		}
		s.phases = append(s.phases, of)
	}
	s.plan, err = newPlan(u, s.phases)
	return err
}

func (s *session) phaseOf(value string) string {
	if s.phase == nil {
		return ""
	}
	return s.phase(value)
}

// Step runs a node and measures its time.
func (s *session) Step(e engine.Event, run func() error) error {
	r := s.Recorder
	var live memory.Usage
	phase := ""
	if s.plan == nil {
		phase = s.phaseOf("")
	} else if e.Index >= 0 {
		phase, live = s.phases[e.Index], s.plan.line.Live[e.Index]
	}
	live[memory.Activation] += e.Dynamic
	r.setLive(live)
	r.stale += e.Stale
	r.nested = append(r.nested, 0)
	begin := time.Now()
	err := run()
	took := time.Since(begin)
	// Nodes of subgraphs have rows of their own; times must not count twice.
	own := took - r.nested[len(r.nested)-1]
	if r.nested = r.nested[:len(r.nested)-1]; len(r.nested) > 0 {
		r.nested[len(r.nested)-1] += took
	}
	x := sums{1, own, e.Alloc, e.Freed}
	add(r.rows, rowKey{e.Op, phase}, x)
	add(r.nodes, nodeKey{e.Node, e.Op, phase}, x)
	r.trace.node(event{name: e.Node, op: e.Op, phase: phase, at: begin.Sub(r.start), took: took, alloc: e.Alloc,
		freed: e.Freed, live: live, node: true})
	return err
}

// setLive records the live memory of a node.
func (r *Recorder) setLive(live memory.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = live
	if live.Total() > r.most.Total() {
		r.most = live
	}
}

func add[K comparable](rows map[K]*sums, key K, x sums) {
	s := rows[key]
	if s == nil {
		s = &sums{}
		rows[key] = s
	}
	s.calls += x.calls
	s.time += x.time
	s.alloc += x.alloc
	s.freed += x.freed
}
