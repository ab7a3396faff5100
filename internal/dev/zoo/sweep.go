package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/onnx"
)

// A sweep runs cases on models.
type sweep struct {
	dir     string
	limit   time.Duration
	memory  int64
	workers int

	program, python string // mcompress, and Python with ONNX Runtime
	version         string // digest of mcompress

	oracle conform.Worker

	mu      sync.Mutex
	results map[string]result // by key
	file    *os.File
}

// A result is a line of the results.
type result struct {
	Model   string  `json:"model"`
	Digest  string  `json:"digest"`
	Case    string  `json:"case"`
	Code    int     `json:"code"`
	Seconds float64 `json:"seconds"`
	Message string  `json:"message,omitempty"` // of an error
	Ratio   float64 `json:"ratio,omitempty"`   // size of the model to that of the result
	// The lowest SQNR of the outputs of a result and of its source, in the report, which the embedded engine measured,
	// and in ONNX Runtime, exact where they are equal; or why it was not measured.
	Embedded string `json:"embedded,omitempty"`
	ORT      string `json:"ort,omitempty"`
	Weights  string `json:"weights,omitempty"` // the lowest SQNR of a weight in the report
	Finding  string `json:"finding,omitempty"`
	Program  string `json:"program,omitempty"` // digest of the mcompress that ran
}

func (r result) key() string { return r.Digest + " " + r.Case }

// prepare builds the program and reads the results.
func (s *sweep) prepare(ctx context.Context, again bool) error {
	var err error
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if s.python = os.Getenv("MCOMPRESS_PYTHON"); s.python == "" {
		if s.python, err = filepath.Abs(filepath.Join(".venv", "bin", "python")); err != nil {
			return err
		}
	}
	s.program = filepath.Join(s.dir, "mcompress")
	if out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", s.program,
		"./cmd/mcompress").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	if s.version, err = digestOf(s.program); err != nil {
		return err
	}
	s.results = map[string]result{}
	path := filepath.Join(s.dir, "results.jsonl")
	if s.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644); err != nil || again {
		return err
	}
	lines := json.NewDecoder(s.file)
	for {
		var r result
		if err := lines.Decode(&r); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		s.results[r.key()] = r
	}
}

func (s *sweep) close() { s.file.Close() }

// run runs the cases that have no valid result.
func (s *sweep) run(ctx context.Context, models []model, cases []command) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.workers)
	for _, m := range models {
		g.Go(func() error { return s.model(ctx, m, cases) })
	}
	return g.Wait()
}

// model runs the cases of a model.
func (s *sweep) model(ctx context.Context, m model, cases []command) error {
	s.mu.Lock()
	todo := slices.DeleteFunc(slices.Clone(cases), func(c command) bool {
		r, ok := s.results[result{Digest: m.digest, Case: c.name}.key()]
		return ok && s.valid(r)
	})
	s.mu.Unlock()
	if len(todo) == 0 {
		return ctx.Err()
	}
	dir, err := os.MkdirTemp("", "zoo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "recipe.yaml"), []byte(recipe), 0o644); err != nil {
		return err
	}
	r := s.record(ctx, m, dir)
	for _, c := range todo {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		done := s.test(ctx, m, c, r, dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.add(done); err != nil {
			return err
		}
	}
	return nil
}

// valid reports whether a case need not run again: it has no finding, and what could not run could not with this
// program either.
func (s *sweep) valid(r result) bool {
	return r.Finding == "" && (r.Message == "" || r.Program == s.version)
}

// add stores a result and prints a finding.
func (s *sweep) add(r result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[r.key()] = r
	if r.Finding != "" {
		fmt.Printf("%s: %s: %s\n  %s\n", r.Model, r.Case, r.Finding, r.Message)
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.file.Write(append(line, '\n'))
	return err
}

// test runs a case.
func (s *sweep) test(ctx context.Context, m model, c command, samples recording, dir string) result {
	r := result{Model: m.name, Digest: m.digest, Case: c.name, Program: s.version}
	if why := c.lacks(samples); why != "" {
		r.Message = "not run: " + why
		return r
	}
	out := filepath.Join(dir, "out")
	defer os.RemoveAll(out)
	if err := os.Mkdir(out, 0o755); err != nil {
		r.Finding = err.Error()
		return r
	}
	written := filepath.Join(out, "out.onnx")
	words := strings.NewReplacer("MODEL", m.path, "OUT", written, "PARTS", out, "DATA", samples.data, "RECIPE",
		filepath.Join(dir, "recipe.yaml"))
	args := make([]string, len(c.args))
	for i, a := range c.args {
		args[i] = words.Replace(a)
	}
	end := s.start(ctx, dir, args...)
	r.Code, r.Seconds, r.Finding = end.code, end.seconds, end.finding
	if c.written == recorded && (end.code == 0 || end.code == 3) {
		r.evaluate(end)
		return r
	}
	if end.code != 0 {
		r.Message = strings.NewReplacer(filepath.Dir(m.path)+"/", "", dir+"/", "").Replace(end.message())
		return r
	}
	if c.written != unchecked {
		s.check(m, c, samples, written, &r)
	}
	return r
}

// low is the SQNR, in decibels, of the embedded engine's outputs below which those outside verify's tolerances are a
// finding: sums of 8-bit activations differ from ONNX Runtime's by some percent.
const low = 25

// evaluate reads verify's comparison with recorded outputs.
func (r *result) evaluate(end run) {
	lowest, err := end.lowest()
	r.Embedded = figure(lowest)
	switch {
	case err != nil:
		r.Finding = err.Error()
	case end.code == 0:
	case math.IsInf(lowest, 1):
		r.Finding = "integers differ from those of ONNX Runtime"
	case lowest < low:
		r.Finding = "outputs differ from those of ONNX Runtime"
	default:
		r.Finding = ""
	}
}

// lacks is why a command cannot run without the samples that it needs.
func (c command) lacks(samples recording) string {
	switch {
	case c.needs != nothing && samples.data == "":
		return samples.why
	case c.needs == outputs && !samples.loads:
		return samples.error
	}
	return ""
}

// check opens a result, and compares it with its report in ONNX Runtime.
func (s *sweep) check(m model, c command, samples recording, written string, r *result) {
	f, err := onnx.Open(written)
	if err != nil {
		r.Finding = "the output cannot be opened: " + err.Error()
		return
	}
	f.Close()
	r.Ratio = ratio(m.path, written)
	r.Finding = r.judge(&s.oracle, m, c, samples, written)
}

// ratio is the size of a to that of b.
func ratio(a, b string) float64 {
	x, err := os.Stat(a)
	if err != nil {
		return 0
	}
	y, err := os.Stat(b)
	if err != nil {
		return 0
	}
	return math.Round(100*float64(x.Size())/float64(y.Size())) / 100
}
