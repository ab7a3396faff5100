package profile

import (
	"cmp"
	"slices"
	"time"
)

// A Profile is the measurement of a number of steps or runs. Rows are means per step, the longest first.
type Profile struct {
	Steps     int     `json:"steps"`
	Seconds   float64 `json:"seconds"`          // mean per step
	Phases    []Row   `json:"phases,omitempty"` // of training; their times add up to Seconds
	Operators []Row   `json:"operators"`        // with Outside they add up to Seconds
	Outside   float64 `json:"outside_seconds"`  // of nodes
	Nodes     []Row   `json:"nodes"`
	Peak      *Peak   `json:"peak,omitempty"`
	// memory besides the arena by kind: weights, optimizer states, gradients
	Held   map[string]int64 `json:"held_bytes,omitempty"`
	Waste  *Waste           `json:"waste,omitempty"`
	Growth []Growth         `json:"growth,omitempty"`
}

// A Row is an operator, a node or a phase, per step. Bytes are in the arena. Times are without those of nodes in
// subgraphs.
type Row struct {
	Name     string  `json:"name,omitempty"`
	Op       string  `json:"op,omitempty"` // of a node
	Phase    string  `json:"phase,omitempty"`
	Calls    float64 `json:"calls"`
	Seconds  float64 `json:"seconds"`
	Fraction float64 `json:"share"`
	Alloc    int64   `json:"allocated_bytes"`
	Freed    int64   `json:"freed_bytes"`
}

// Profile returns the measurement so far, nil before the first step.
func (r *Recorder) Profile() *Profile {
	if r == nil || r.steps == 0 {
		return nil
	}
	p := &Profile{Steps: r.steps, Seconds: r.total.Seconds() / float64(r.steps), Held: byKind(r.static),
		Growth: r.growth.Growth()}
	phases := map[string]*sums{}
	var nodes, waited time.Duration
	for k, s := range r.rows {
		add(phases, k.phase, *s)
		if k.op == "" {
			// Rows without an operator are activities outside of graphs, such as waiting for samples.
			waited += s.time
		} else {
			nodes += s.time
			p.Operators = append(p.Operators, p.row(Row{Name: k.op, Phase: k.phase}, s))
		}
	}
	p.Outside = (r.total - nodes).Seconds() / float64(r.steps)
	add(phases, Outside, sums{time: r.total - nodes - waited})
	for k, s := range r.nodes {
		p.Nodes = append(p.Nodes, p.row(Row{Name: k.node, Op: k.op, Phase: k.phase}, s))
	}
	if r.ofTraining() {
		for name, s := range phases {
			p.Phases = append(p.Phases, p.row(Row{Phase: name}, s))
		}
	}
	for _, rows := range [][]Row{p.Phases, p.Operators, p.Nodes} {
		slices.SortFunc(rows, func(a, b Row) int {
			return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Op, b.Op),
				cmp.Compare(a.Phase, b.Phase))
		})
	}
	if s := r.largest(); s != nil {
		p.Peak, p.Waste = s.plan.peak(), s.plan.waste()
		p.Waste.Stale = r.stale / int64(r.steps)
	}
	return p
}

// row completes a row by the means of s.
func (p *Profile) row(r Row, s *sums) Row {
	n := float64(p.Steps)
	r.Calls, r.Seconds = float64(s.calls)/n, s.time.Seconds()/n
	r.Fraction = r.Seconds / p.Seconds
	r.Alloc, r.Freed = s.alloc/int64(p.Steps), s.freed/int64(p.Steps)
	return r
}

// ofTraining reports whether some graph has phases.
func (r *Recorder) ofTraining() bool {
	return slices.ContainsFunc(r.sessions, func(s *session) bool { return s.phase != nil })
}

// largest is the session with the largest peak, nil if none is planned.
func (r *Recorder) largest() (found *session) {
	for _, s := range r.sessions {
		if s.plan != nil && (found == nil || s.plan.line.Peak > found.plan.line.Peak) {
			found = s
		}
	}
	return found
}

// A Live is the memory of a running training in bytes.
type Live struct {
	Step    int              `json:"step"`
	Arena   map[string]int64 `json:"arena_bytes"`         // in use by the running node, by kind; empty between steps
	Most    map[string]int64 `json:"largest_arena_bytes"` // in use by kind, at the largest total since the last line
	Held    map[string]int64 `json:"held_bytes"`          // besides the arena, by kind
	Samples int64            `json:"samples_bytes"`       // with decoded images
	Heap    int64            `json:"heap_bytes"`          // of Go, garbage included
}

// Live returns the memory in use, and the maximum of the arena since the last call. Other goroutines may call it while
// steps run.
func (r *Recorder) Live() Live {
	r.mu.Lock()
	now, most, step, held, samples := r.now, r.most, r.done, r.static, r.samples
	// The next maximum starts from what is in use.
	r.most = r.now
	r.mu.Unlock()
	live := Live{Step: step, Arena: byKind(now), Most: byKind(most), Held: byKind(held), Heap: heapInUse()}
	if samples != nil {
		live.Samples = samples()
	}
	return live
}
