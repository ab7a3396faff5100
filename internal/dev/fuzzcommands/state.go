package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcompress/mcompress/internal/atomicfile"
)

// A state is what the runs of a seed have done. It is stored after each case, so that a run that is killed loses none.
type state struct {
	Next    int     `json:"next"`            // case that no run has begun
	Begun   []int   `json:"begun,omitempty"` // cases before Next that have not ended: a later run begins with them
	Cases   int     `json:"cases"`           // that ended
	Seconds float64 `json:"seconds"`         // of all runs
	Codes   [8]int  `json:"codes"`           // number of cases by exit code; 7 for all others

	Findings  map[string][]int `json:"findings,omitempty"`  // cases by the kind of their finding
	Commands  map[string]int   `json:"commands,omitempty"`  // of generated models: cases by command
	Operators map[string]int   `json:"operators,omitempty"` // of generated models: cases by operator
}

// findings is the number of cases with one.
func (s *state) findings() int {
	n := 0
	for _, cases := range s.Findings {
		n += len(cases)
	}
	return n
}

func (f *fuzzer) statePath() string {
	return filepath.Join(f.dir, fmt.Sprintf("state-%d.json", f.seed))
}

// load reads the state of the runs before, or begins one.
func (f *fuzzer) load() error {
	f.state = state{Next: f.start}
	text, err := os.ReadFile(f.statePath())
	if err == nil {
		err = json.Unmarshal(text, &f.state)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	f.interrupted = slices.Clone(f.state.Begun)
	f.resumed = time.Now()
	return err
}

// next begins a case: one that an earlier run has not ended, or a new one.
func (f *fuzzer) next() (i int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.interrupted) > 0 {
		i, f.interrupted = f.interrupted[0], f.interrupted[1:]
		return i, true
	}
	i = f.state.Next
	if f.end > 0 && i >= f.end {
		return 0, false
	}
	f.state.Next++
	f.state.Begun = append(f.state.Begun, i)
	return i, true
}

// count adds a case that ended to the state, with what its model has, and stores it.
func (f *fuzzer) count(c *testCase) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.state
	s.Begun = slices.DeleteFunc(s.Begun, func(i int) bool { return i == c.number })
	s.Cases++
	code := c.code
	if code < 0 || code > 4 {
		code = 7
	}
	s.Codes[code]++
	if s.Findings == nil {
		s.Findings, s.Commands, s.Operators = map[string][]int{}, map[string]int{}, map[string]int{}
	}
	if c.finding != "" {
		s.Findings[kind(c.finding)] = append(s.Findings[kind(c.finding)], c.number)
	}
	if c.label != "" {
		s.Commands[c.label]++
	}
	for _, name := range c.operators {
		s.Operators[name]++
	}
	now := time.Now()
	s.Seconds += now.Sub(f.resumed).Seconds()
	f.resumed = now
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return atomicfile.Write(f.statePath(), atomicfile.Private(), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
