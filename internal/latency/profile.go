package latency

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/onnx"
)

// A Profile is the time of a number of runs by operator and node.
type Profile struct {
	Model     string       `json:"model"`
	Batch     int64        `json:"batch"`
	Runs      int          `json:"runs"`
	Seconds   float64      `json:"seconds"` // mean per run
	Operators []ProfileRow `json:"operators"`
	Nodes     []ProfileRow `json:"nodes"`

	steps []traced
}

// A ProfileRow is an operator or a node, per run. Bytes are in the arena.
type ProfileRow struct {
	Name     string  `json:"name"`
	Op       string  `json:"op,omitempty"` // of a node
	Calls    float64 `json:"calls"`
	Seconds  float64 `json:"seconds"`
	Fraction float64 `json:"share"`
	Alloc    int64   `json:"allocated_bytes"`
	Freed    int64   `json:"freed_bytes"`
}

// A traced is one execution of a node.
type traced struct {
	engine.Event
	at, took time.Duration
}

// A recorder records the time of every step. Runs are sequential.
type recorder struct {
	start time.Time
	steps []traced
}

// Step runs a step and records its start and duration, subgraphs included.
func (r *recorder) Step(e engine.Event, run func() error) error {
	begin := time.Now()
	err := run()
	r.steps = append(r.steps, traced{e, begin.Sub(r.start), time.Since(begin)})
	return err
}

// Profile runs the model of j on the embedded backend and returns the time by operator and node.
func (j *Job) Profile(ctx context.Context) (*Profile, error) {
	if j.Backend != Embedded {
		return nil, errors.New("only the embedded backend can be profiled")
	}
	f, err := onnx.OpenContext(ctx, j.Model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, explain, err := j.inputs(ctx, f.Model)
	if err != nil {
		return nil, err
	}
	r := &recorder{start: time.Now()}
	s, err := j.open(ctx, f.Model, r)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for range max(j.Warmup, 1) {
		if _, err := s.Run(ctx, in, nil); err != nil {
			return nil, explain(err)
		}
	}
	r.steps, r.start = nil, time.Now()
	runs := max(j.Runs, 1)
	for range runs {
		if _, err := s.Run(ctx, in, nil); err != nil {
			return nil, explain(err)
		}
	}
	p := r.profile(runs, time.Since(r.start))
	p.Model, p.Batch = j.Model, j.Batch
	return p, nil
}

func (r *recorder) profile(runs int, all time.Duration) *Profile {
	p := &Profile{Runs: runs, Seconds: all.Seconds() / float64(runs), steps: r.steps}
	ops, nodes := map[string]*ProfileRow{}, map[string]*ProfileRow{}
	for _, s := range r.steps {
		add(ops, s.Op, "", s)
		add(nodes, s.Node, s.Op, s)
	}
	p.Operators, p.Nodes = p.rows(ops), p.rows(nodes)
	return p
}

func add(rows map[string]*ProfileRow, name, op string, s traced) {
	r := rows[name]
	if r == nil {
		r = &ProfileRow{Name: name, Op: op}
		rows[name] = r
	}
	r.Calls++
	r.Seconds += s.took.Seconds()
	r.Alloc += s.Alloc
	r.Freed += s.Freed
}

// rows are per run, the longest first.
func (p *Profile) rows(by map[string]*ProfileRow) []ProfileRow {
	out := make([]ProfileRow, 0, len(by))
	for _, r := range by {
		n := float64(p.Runs)
		out = append(out, ProfileRow{
			Name: r.Name, Op: r.Op, Calls: r.Calls / n, Seconds: r.Seconds / n, Fraction: r.Seconds / n / p.Seconds,
			Alloc: r.Alloc / int64(p.Runs), Freed: r.Freed / int64(p.Runs),
		})
	}
	slices.SortFunc(out, func(a, b ProfileRow) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Trace writes the steps in the Trace Event format of Chrome and Perfetto: complete events, times in
// microseconds.
func (p *Profile) Trace(w io.Writer) error {
	type event struct {
		Name  string         `json:"name"`
		Cat   string         `json:"cat"`
		Phase string         `json:"ph"`
		TS    float64        `json:"ts"`
		Dur   float64        `json:"dur"`
		PID   int            `json:"pid"`
		TID   int            `json:"tid"`
		Args  map[string]any `json:"args"`
	}
	events := make([]event, len(p.steps))
	for i, s := range p.steps {
		events[i] = event{
			Name: s.Node, Cat: s.Op, Phase: "X", TS: micro(s.at), Dur: micro(s.took), PID: 1, TID: 1,
			Args: map[string]any{"op": s.Op, "allocated_bytes": s.Alloc, "freed_bytes": s.Freed},
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
