package mcompress

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/weightcache"
	"github.com/mcompress/mcompress/ir"
)

// A Session runs one model with the embedded engine. Several goroutines may use it. The zero value is closed.
type Session struct {
	running sync.RWMutex // runs hold it for reading
	closed  bool

	session engine.Session
	graph   *ir.Graph
	model   *Model         // that the session closes; nil for one of the caller
	memory  *MemoryProfile // may be nil
}

// A Port is an input or output of a session.
type Port struct {
	Name string
	Type *ir.Type // nil if the model does not declare it, or if it is not a tensor
}

// SessionOptions are the options of sessions. The zero value has defaults.
type SessionOptions struct {
	// Limits are those of the session: beyond half of Memory weights are read from the file in each run.
	Limits Limits

	// WeightCache is a folder that keeps packed weights of models: later sessions of the same model map them into memory
	// that is common to their processes, instead of reading and packing the weights again. Files of the folder may be
	// deleted at any time. Errors of the folder do not prevent sessions; Warning, which may be nil, is called with them.
	WeightCache string
	Warning     func(error)

	Memory *MemoryProfile // measures the memory of the session; may be nil
}

// NewSession opens the model at a path or URL to run it.
func NewSession(ctx context.Context, path string, o SessionOptions) (*Session, error) {
	m, err := OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	s, err := m.NewSession(ctx, o)
	if err != nil {
		m.Close()
		return nil, err
	}
	s.model = m
	return s, nil
}

// NewSession is the function NewSession for an open model, which must stay open as long as the session.
func (m *Model) NewSession(ctx context.Context, o SessionOptions) (*Session, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	var cache *weightcache.Cache
	if o.WeightCache != "" {
		cache = &weightcache.Cache{Dir: o.WeightCache, Warn: o.Warning}
	}
	e, err := cache.Open(ctx, m.file, engine.Options{Workers: o.Limits.threads(),
		Limits: memory.Limits{Memory: o.Limits.Memory, Steps: o.Limits.Steps}})
	if err != nil {
		return nil, err
	}
	o.Memory.opened(e)
	return &Session{session: e, graph: m.file.Model.Graph, memory: o.Memory}, nil
}

// threads is the number of worker threads.
func (l Limits) threads() int { return cmp.Or(max(l.Workers, 0), runtime.GOMAXPROCS(0)) }

// Run computes the outputs for the inputs, both by name. ir.ArrayOf makes arrays of slices. After Close it is an error.
func (s *Session) Run(ctx context.Context, inputs map[string]*ir.Array) (map[string]*ir.Array, error) {
	s.running.RLock()
	defer s.running.RUnlock()
	if s.closed || s.session == nil {
		return nil, errors.New("the session is closed")
	}
	outputs, err := s.session.Run(ctx, inputs, nil)
	if err == nil {
		s.memory.ran(outputs)
	}
	return outputs, err
}

// Recycle lets later runs return outputs in the memory of these, which the caller no longer uses. It saves the
// allocation and the garbage collection of outputs that are large compared with the model, such as the logits of a
// small language model. It may be called during runs. Split sessions do not reuse memory.
func (s *Session) Recycle(outputs ...*ir.Array) {
	if e, ok := s.session.(*engine.Interpreter); ok {
		e.Recycle(outputs...)
	}
}

// Inputs are the inputs of the model, without constants.
func (s *Session) Inputs() []Port {
	if s.session == nil {
		return nil
	}
	return ports(s.session.Inputs())
}

// Outputs are the outputs of the model.
func (s *Session) Outputs() []Port {
	if s.session == nil {
		return nil
	}
	return ports(s.session.Outputs())
}

func ports(of []op.Port) []Port {
	list := make([]Port, len(of))
	for i, p := range of {
		list[i] = Port(p)
	}
	return list
}

// Close releases the memory of the session, after its current runs.
func (s *Session) Close() error {
	s.running.Lock()
	defer s.running.Unlock()
	if s.closed || s.session == nil {
		return nil
	}
	s.closed = true
	err := s.session.Close()
	if e, ok := s.session.(*engine.Interpreter); ok {
		s.memory.closed(e)
	}
	if s.model != nil {
		err = errors.Join(err, s.model.Close())
	}
	return err
}
