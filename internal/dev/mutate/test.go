package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Outcomes of a mutant.
const (
	killed   = "killed"   // a test fails or does not end
	survived = "survived" // all tests pass, or those that end within the limit
	invalid  = "invalid"  // it does not compile
)

// A result is the outcome of a mutant.
type result struct {
	Mutant  mutant  `json:"mutant"`
	Outcome string  `json:"outcome"`
	By      string  `json:"by,omitempty"` // package whose test failed
	Seconds float64 `json:"seconds"`
}

// A tester tests mutants.
type tester struct {
	packages map[string]*pkg
	limit    time.Duration
	usual    map[string]time.Duration // time of the tests of a package without mutants
}

// test runs the tests of the mutant's package, and then those of its importers, until one fails or the time is over.
func (t *tester) test(ctx context.Context, m mutant) (result, error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(dir)
	if err != nil {
		return result{}, err
	}
	r := result{Mutant: m, Outcome: survived}
	if _, err := output(ctx, "go", "build", "-overlay", overlay, m.Package); ctx.Err() != nil {
		return r, ctx.Err()
	} else if err != nil {
		r.Outcome = invalid
		return r, nil
	}
	began := time.Now()
	for _, p := range append([]string{m.Package}, t.packages[m.Package].importers...) {
		left := t.limit - time.Since(began)
		if left <= 0 {
			break
		}
		if t.fails(ctx, p, overlay, left) {
			r.Outcome, r.By = killed, p
			break
		}
	}
	r.Seconds = time.Since(began).Round(time.Second / 10).Seconds()
	return r, ctx.Err()
}

// fails reports whether the tests of a package fail, or hang: they end within a third of the limit without the mutant.
func (t *tester) fails(ctx context.Context, path, overlay string, limit time.Duration) bool {
	text, err := runTests(ctx, path, limit, "-overlay", overlay)
	switch {
	case err == nil || ctx.Err() != nil:
		return false
	case !strings.Contains(text, "panic: test timed out"):
		return true
	}
	if _, ok := t.usual[path]; !ok {
		began := time.Now()
		if _, err := runTests(ctx, path, t.limit, "-count=1"); err != nil {
			began = time.Time{} // longer than the limit
		}
		t.usual[path] = time.Since(began)
	}
	return t.usual[path] < limit/3
}

// runTests runs the tests of a package and returns what they print.
func runTests(ctx context.Context, path string, limit time.Duration, flags ...string) (string, error) {
	args := append([]string{"test", "-vet=off", "-short", "-failfast", "-timeout", limit.String()}, flags...)
	out, err := exec.CommandContext(ctx, "go", append(args, path)...).CombinedOutput()
	return string(out), err
}

// overlay writes the changed file and the description of the overlay, and returns the path of the latter.
func (m mutant) overlay(dir string) (string, error) {
	text, err := os.ReadFile(m.path)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "mutant.go")
	text = append(append(append([]byte{}, text[:m.from]...), m.After...), text[m.from+m.size:]...)
	if err := os.WriteFile(changed, text, 0o644); err != nil {
		return "", err
	}
	description, err := json.Marshal(map[string]any{"Replace": map[string]string{m.path: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, description, 0o644)
}
