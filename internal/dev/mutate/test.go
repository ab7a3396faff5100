package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	baseline map[string]map[string]time.Duration // by package, times of its tests without a mutant
}

// test runs the quick tests of the mutant's package and of its importers, and then their other tests, until one fails
// or the time is over: most mutants fail in quick tests.
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
	own := t.packages[m.Package]
	paths := own.importers
	if len(own.TestGoFiles)+len(own.XTestGoFiles) > 0 {
		paths = append([]string{m.Package}, paths...)
	}
	began := time.Now()
	for _, quick := range []bool{true, false} {
		for _, path := range paths {
			if t.baseline[path] == nil {
				start := time.Now()
				if t.baseline[path], err = testTimes(ctx, path, 3*t.limit); err != nil {
					return r, err
				}
				began = began.Add(time.Since(start))
			}
			left := t.limit - time.Since(began)
			if left > 0 && r.Outcome == survived && t.fails(ctx, path, quick, overlay, left) {
				r.Outcome, r.By = killed, path
			}
		}
	}
	r.Seconds = time.Since(began).Round(time.Second / 10).Seconds()
	return r, ctx.Err()
}

// fails reports whether the quick tests of a package, or the others, fail or hang: without the mutant they end within a
// third of the limit.
func (t *tester) fails(ctx context.Context, path string, quick bool, overlay string, limit time.Duration) bool {
	names, usual, others := quickTests(t.baseline[path])
	selection := "-run"
	if !quick {
		selection, usual = "-skip", others
	}
	if usual == 0 {
		return false
	}
	text, err := runTests(ctx, path, limit, "-overlay", overlay, selection, "^("+strings.Join(names, "|")+")$")
	if err == nil || ctx.Err() != nil {
		return false
	}
	return !strings.Contains(text, "panic: test timed out") || usual < limit/3
}

// quickTests are the tests that end within a second, with the sum of their times and that of the others.
func quickTests(times map[string]time.Duration) (names []string, quick, others time.Duration) {
	for name, d := range times {
		if d <= time.Second {
			names = append(names, name)
			quick += d
		} else {
			others += d
		}
	}
	slices.Sort(names)
	return names, quick, others
}

// testTimes measures the tests of a package. Those that do not end within the limit have its entry "", and the limit as
// their time. It is an error if one fails: it would kill every mutant. Tests that are skipped, such as for want of a
// program, are named: mutants that only they notice survive.
func testTimes(ctx context.Context, path string, limit time.Duration) (map[string]time.Duration, error) {
	text, err := runTests(ctx, path, limit, "-count=1", "-json")
	times, failed, skipped := parseTimes(text)
	if len(failed) > 0 && ctx.Err() == nil {
		return nil, fmt.Errorf("%s: tests fail without a mutant: %s", path, strings.Join(failed, ", "))
	}
	if len(skipped) > 0 {
		fmt.Fprintf(os.Stderr, "%s: %d tests are skipped, so that mutants may survive that they would notice: %s\n",
			path, len(skipped), strings.Join(skipped, ", "))
	}
	if err != nil {
		times[""] = limit
	}
	return times, nil
}

// parseTimes reads the times of tests that passed, and the names of others, from what go test -json prints. A test that
// ran when the time was over has not failed.
func parseTimes(text string) (times map[string]time.Duration, failed, skipped []string) {
	times = map[string]time.Duration{}
	late := false
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var e struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if d.Decode(&e) != nil {
			break
		}
		late = late || strings.HasPrefix(e.Output, "panic: test timed out")
		if e.Test == "" || strings.Contains(e.Test, "/") {
			continue
		}
		switch e.Action {
		case "pass":
			times[e.Test] = max(time.Millisecond, time.Duration(e.Elapsed*float64(time.Second)))
		case "fail":
			failed = append(failed, e.Test)
		case "skip":
			skipped = append(skipped, e.Test)
		}
	}
	if late {
		failed = nil
	}
	return times, failed, skipped
}

// runTests runs the tests of a package and returns what they print.
func runTests(ctx context.Context, path string, limit time.Duration, flags ...string) (string, error) {
	args := append([]string{"test", "-vet=off", "-short", "-failfast", "-timeout", limit.String()}, flags...)
	out, err := exec.CommandContext(ctx, "go", append(args, path)...).Output()
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
