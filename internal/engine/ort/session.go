package ort

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Options configure a session. The zero value enables all optimizations.
type Options struct {
	Threads int               // threads within an operator; 0: one per core
	Level   string            // optimization level: none, basic, extended, all; all if empty
	Config  map[string]string // session configuration entries, such as session.x64quantprecision
}

// levels are numbered as GraphOptimizationLevel.
var levels = map[string]uintptr{"none": 0, "basic": 1, "extended": 2, "all": 99, "": 99}

const logFatal = 4 // of OrtLoggingLevel: problems are reported as errors

// A Session is a loaded model, ready to run on the CPU. Its methods may be called concurrently.
type Session struct {
	lib     *Library
	inputs  []op.Port
	weights []op.Port // initializers among the graph's inputs: feeding them is optional
	outputs []op.Port

	optional []string // ports that may be empty optionals

	running sync.RWMutex // read-locked by runs, write-locked by Close
	scope   scope        // pins nothing: a session that is never closed is only a leak
	session uintptr      // 0 when closed
	memory  uintptr
}

// Open loads a model; external data is read from the model's folder. The session must
// be closed.
func Open(lib *Library, modelPath string, o Options) (*Session, error) {
	s := &Session{lib: lib, scope: scope{Library: lib}}
	if err := s.open(modelPath, o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) open(path string, o Options) error {
	// It would end the C string, and another file be opened.
	if strings.ContainsRune(path, 0) {
		return errors.New("a zero byte in the model's path")
	}
	setup := scope{Library: s.lib}
	defer setup.close()
	// All sessions of a process share one environment, which is reference-counted.
	env, err := s.scope.create(createEnv, releaseEnv, logFatal, setup.text("mcompress"))
	if err != nil {
		return err
	}
	if s.memory, err = s.scope.create(createCPUMemoryInfo, releaseMemoryInfo, 0, 0); err != nil {
		return err
	}
	options, err := setup.options(o)
	if err != nil {
		return err
	}
	s.session, err = s.scope.create(createSession, releaseSession, env, address(&setup, encodePath(path)), options)
	if err != nil {
		return err
	}
	return s.findPorts()
}

func (s *scope) options(o Options) (uintptr, error) {
	level, ok := levels[o.Level]
	if !ok {
		return 0, fmt.Errorf("optimization level is %q, want none, basic, extended or all", o.Level)
	}
	if o.Threads < 0 {
		return 0, fmt.Errorf("%d threads", o.Threads)
	}
	options, err := s.create(createSessionOptions, releaseSessionOptions)
	if err != nil {
		return 0, err
	}
	if err := s.call(setSessionGraphOptimizationLevel, options, level); err != nil {
		return 0, err
	}
	if err := s.call(setIntraOpNumThreads, options, uintptr(o.Threads)); err != nil {
		return 0, err
	}
	for _, key := range slices.Sorted(maps.Keys(o.Config)) {
		if err := s.call(addSessionConfigEntry, options, s.text(key), s.text(o.Config[key])); err != nil {
			return 0, err
		}
	}
	return options, nil
}

// Close waits for pending runs and releases everything that the session owns. A second Close does nothing.
func (s *Session) Close() error {
	s.running.Lock()
	defer s.running.Unlock()
	s.session = 0
	s.scope.close()
	return nil
}
