package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A cost is what one process took, as the shared peers.py prints it.
type cost struct {
	Seconds float64 `json:"seconds"`
	User    float64 `json:"user"`
	System  float64 `json:"system"`
	Peak    float64 `json:"peak_mb"` // MiB resident
	Exit    int     `json:"exit"`
}

// peer runs one of peers.py's verbs once.
func (b *bench) peer(ctx context.Context, args ...string) (cost, error) {
	cmd := exec.CommandContext(ctx, b.python, append([]string{filepath.Join(b.shared, "tools", "peers.py")},
		args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, last(stderr.String()))
	}
	var c cost
	// A peer's own words, such as a bar of progress, may precede it on the same line.
	if err := json.Unmarshal(out[max(0, bytes.LastIndexByte(out, '{')):], &c); err != nil {
		return cost{}, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	if c.Exit != 0 {
		return c, fmt.Errorf("%s: exit code %d: %s", strings.Join(args, " "), c.Exit, last(stderr.String()))
	}
	return c, nil
}

//go:embed runtime.py
var runtimeScript string

// complete is a script after the common part.
func complete(script string) string { return runtimeScript + "\n\n" + script }

// part runs a part of a script, which its first argument names, and returns what it prints.
func (b *bench) part(ctx context.Context, name, script string, args []string) (string, error) {
	text, err := b.stdout(ctx, b.python, append([]string{"-c", complete(script)}, args...)...)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return text, nil
}

// stdout runs a command and returns what it prints.
func (b *bench) stdout(ctx context.Context, name string, args ...string) (string, error) {
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, last(complaint.String()))
	}
	return string(out), nil
}

func last(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// A subject is one command that a table compares.
type subject struct {
	name string
	args []string // of peers.py
	runs int      // 0 for the bench's own number
	out  string   // removed before each run, with its data file: freeing an old one takes time
}

// command is a subject that peers.py runs as a process.
func command(name string, args ...string) subject {
	return subject{name: name, args: append([]string{"command", "--"}, args...)}
}

// medians runs the subjects in turn, so that a busy minute hits all of them, and
// returns the median time and the largest resident memory of each.
func (b *bench) medians(ctx context.Context, subjects []subject) (map[string]cost, error) {
	all := map[string][]cost{}
	for i := range b.runs {
		for _, s := range subjects {
			if s.runs > 0 && i >= s.runs {
				continue
			}
			for _, f := range parts(s.out) {
				_ = os.Remove(f)
			}
			// What the run before left to be flushed would be counted against this one.
			if err := exec.CommandContext(ctx, "sync").Run(); err != nil {
				return nil, err
			}
			c, err := b.peer(ctx, s.args...)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			all[s.name] = append(all[s.name], c)
		}
	}
	out := map[string]cost{}
	for name, cs := range all {
		m := median(cs)
		for _, c := range cs {
			m.Peak = max(m.Peak, c.Peak)
		}
		out[name] = m
	}
	return out, nil
}

func median(cs []cost) cost {
	s := slices.Clone(cs)
	slices.SortFunc(s, func(a, b cost) int {
		if a.Seconds < b.Seconds {
			return -1
		}
		return 1
	})
	return s[len(s)/2]
}
