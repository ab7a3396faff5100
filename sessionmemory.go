package mcompress

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/profile"
	"github.com/mcompress/mcompress/ir"
)

// A MemoryProfile measures the memory of the sessions that are opened with it (SessionOptions.Memory) after their runs,
// so that a program finds its leaks: sessions that are never closed, outputs that stay referenced, values that remain
// after runs. The zero value is ready for use. Several sessions and goroutines may share one. It collects garbage after
// some of the runs, fewer and fewer: it is for tests and diagnosis.
type MemoryProfile struct {
	outputs, outputBytes atomic.Int64 // arrays that Run returned and that are still referenced

	mu       sync.Mutex
	sessions map[*engine.Interpreter]bool // open ones
	runs     int
	samples  profile.Samples
}

// A Memory is the memory of sessions in bytes.
type Memory struct {
	Sessions int   // open ones
	Runs     int   // so far
	Weights  int64 // of the open sessions
	Arenas   int64 // that open sessions keep for later runs, of the last four shapes of inputs, and recycled outputs
	Running  int64 // of runs in progress; what remains between runs is a leak of an operator

	Outputs     int   // arrays that Run returned and that the program still references, as far as garbage was collected
	OutputBytes int64 // of those

	Heap       int64 // live bytes of the Go heap of the process at the last garbage collection
	Goroutines int   // of the process
}

// A MemoryGrowth is one of the numbers of Memory over runs: its name, the first and the last sample, the mean change
// per run, and whether it grows from sample to sample, which is a leak. The first quarter of the samples is left out,
// and fewer than nine runs are not checked.
type MemoryGrowth struct {
	Name    string
	First   int64 // at the first sample after the first quarter
	Last    int64
	PerStep float64 // mean change by run
	Grows   bool    // from sample to sample, never decreasing: a leak
	Checked bool    // there were enough runs for Grows
}

// Memory returns the memory at this time.
func (p *MemoryProfile) Memory() Memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.measure()
}

func (p *MemoryProfile) measure() Memory {
	m := Memory{
		Sessions: len(p.sessions), Runs: p.runs, Outputs: int(p.outputs.Load()), OutputBytes: p.outputBytes.Load(),
		Heap: profile.HeapLive(), Goroutines: runtime.NumGoroutine(),
	}
	for e := range p.sessions {
		x := e.Memory()
		m.Weights, m.Arenas, m.Running = m.Weights+x.Weights, m.Arenas+x.Idle, m.Running+x.Running
	}
	return m
}

// Growth returns the growth over the runs so far; nil before the first one.
func (p *MemoryProfile) Growth() []MemoryGrowth {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []MemoryGrowth
	for _, g := range p.samples.Growth() {
		all = append(all, MemoryGrowth(g))
	}
	return all
}

// opened adds a session.
func (p *MemoryProfile) opened(e *engine.Interpreter) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions == nil {
		p.sessions = map[*engine.Interpreter]bool{}
	}
	p.sessions[e] = true
}

// closed removes a session.
func (p *MemoryProfile) closed(e *engine.Interpreter) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, e)
}

// ran records a run and its outputs.
func (p *MemoryProfile) ran(outputs map[string]*ir.Array) {
	if p == nil {
		return
	}
	for _, a := range outputs {
		p.track(a)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs++; !p.samples.Due(p.runs) {
		return
	}
	runtime.GC()
	m := p.measure()
	p.samples.Add(
		profile.Quantity{Name: "open sessions", Value: int64(m.Sessions)},
		profile.Quantity{Name: "weights", Value: m.Weights},
		profile.Quantity{Name: "arenas", Value: m.Arenas}, profile.Quantity{Name: "running", Value: m.Running},
		profile.Quantity{Name: "output bytes", Value: m.OutputBytes}, profile.Quantity{Name: "Go heap", Value: m.Heap},
		profile.Quantity{Name: "goroutines", Value: int64(m.Goroutines)},
	)
}

// track counts an output until the garbage collector finds its elements unreferenced.
func (p *MemoryProfile) track(a *ir.Array) {
	n := int64(len(a.Data))
	p.outputs.Add(1)
	p.outputBytes.Add(n)
	released := func(n int64) {
		p.outputs.Add(-1)
		p.outputBytes.Add(-n)
	}
	if n > 0 {
		runtime.AddCleanup(&a.Data[0], released, n)
		return
	}
	runtime.AddCleanup(a, released, n)
}
