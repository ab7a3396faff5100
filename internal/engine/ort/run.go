package ort

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Run runs the model on inputs by name and returns the outputs named by fetch, all of them if it is empty. Values
// inside the graph cannot be fetched. When ctx ends, Run returns its cause after the current operator.
func (s *Session) Run(ctx context.Context, in map[string]*ir.Array, fetch []string) (map[string]*ir.Array, error) {
	s.running.RLock()
	defer s.running.RUnlock()
	if s.session == 0 {
		return nil, errors.New("the session is closed")
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	fetched, err := s.fetchedNames(fetch)
	if err != nil {
		return nil, err
	}
	call := scope{Library: s.lib}
	defer call.close()
	names, values, err := s.feed(&call, in)
	if err != nil {
		return nil, err
	}
	results, err := s.run(ctx, &call, names, values, fetched)
	if err != nil {
		return nil, err
	}
	out := map[string]*ir.Array{}
	for i, name := range fetched {
		if out[name], err = s.lib.array(results[i]); err != nil {
			return nil, fmt.Errorf("output %q: %w", name, err)
		}
	}
	return out, nil
}

// fetchedNames are the names to fetch, each once.
func (s *Session) fetchedNames(fetch []string) ([]string, error) {
	var names []string
	for _, p := range s.outputs {
		if len(fetch) == 0 || slices.Contains(fetch, p.Name) {
			names = append(names, p.Name)
		}
	}
	for _, name := range fetch {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("fetch %q: ONNX Runtime returns outputs of the graph only, which are %s", name,
				listed(s.outputs))
		}
	}
	return names, nil
}

// feed returns the names and values of the inputs, in the order of their names.
func (s *Session) feed(call *scope, in map[string]*ir.Array) (names []string, values []uintptr, err error) {
	for _, p := range s.inputs {
		if in[p.Name] == nil {
			return nil, nil, fmt.Errorf("input %q is missing", p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if err := s.fits(name, in[name]); err != nil {
			return nil, nil, err
		}
		if in[name].Kind == ir.None {
			continue // omitting the input means empty; ONNX Runtime has no such value
		}
		value, err := call.value(in[name], s.memory)
		if err != nil {
			return nil, nil, fmt.Errorf("input %q: %w", name, err)
		}
		names, values = append(names, name), append(values, value)
	}
	return names, values, nil
}

// fits reports errors that ONNX Runtime does not detect, or reports without the input's name.
func (s *Session) fits(name string, a *ir.Array) error {
	for _, p := range slices.Concat(s.inputs, s.weights) {
		if p.Name != name {
			continue
		}
		if a == nil || a.Kind == ir.None && !slices.Contains(s.optional, name) {
			return fmt.Errorf("input %q has no value", name)
		}
		if p.Type != nil && (a.Kind != ir.Dense || a.DType != p.Type.Elem) {
			return fmt.Errorf("input %q is %s, the model declares %s", name, a, p.Type.Elem)
		}
		return nil
	}
	return fmt.Errorf("unknown input %q; the model's inputs are %s", name, listed(s.inputs))
}

// run returns the outputs as OrtValues, which call releases.
func (s *Session) run(ctx context.Context, call *scope, names []string, values []uintptr, fetched []string) ([]uintptr,
	error) {
	options, err := call.create(createRunOptions, releaseRunOptions)
	if err != nil {
		return nil, err
	}
	results := make([]uintptr, len(fetched))
	defer s.lib.terminate(ctx, options)()
	err = call.call(run, s.session, options,
		call.texts(names), address(call, values), uintptr(len(values)),
		call.texts(fetched), uintptr(len(fetched)), address(call, results))
	// Before the error is returned; outputs that do not exist are 0, which own ignores.
	call.own(releaseValue, results...)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return results, err
}

// terminate ends the run with these options when ctx ends. The returned function stops this, after which the options
// may be released.
func (l *Library) terminate(ctx context.Context, options uintptr) (stop func()) {
	done := make(chan struct{})
	unlink := context.AfterFunc(ctx, func() {
		defer close(done)
		l.call(runOptionsSetTerminate, options) // cannot fail: it sets a flag
	})
	return func() {
		// It has started: the options must not be released before its call has returned.
		if !unlink() {
			<-done
		}
	}
}

func listed(ports []op.Port) string {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = fmt.Sprintf("%q", p.Name)
	}
	return strings.Join(names, ", ")
}
