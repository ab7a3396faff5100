package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// policyName is the name of the file of gates in a repository.
const policyName = "mcompress.yaml"

// A policy is the gates of a repository, which hold for every command that has them and does not set them itself.
type policy struct {
	Gates       yaml.MapSlice `yaml:"gates"`
	Baseline    string        `yaml:"baseline"`
	AllowRandom bool          `yaml:"allow-random-inputs"`
}

// applyPolicy sets the gates of the policy as flags of a command, as far as the command has them and they are not given.
func (t *tool) applyPolicy(ctx context.Context, fs *flag.FlagSet) error {
	if !slices.ContainsFunc(report.GateNames(), func(gate string) bool { return fs.Lookup(gate) != nil }) {
		return nil
	}
	path, err := t.policyPath()
	if err != nil || path == "" {
		return err
	}
	var text []byte
	if t.policy == "" {
		text, err = bounded.ReadRegular(path, pass.MaxRecipe)
	} else {
		text, err = readAtMost(ctx, path, pass.MaxRecipe+1) // a pipe that the user names is read
	}
	if err != nil {
		return err
	}
	set, err := applied(text, fs)
	if err != nil {
		return &usageError{fmt.Errorf("%s: %w", path, err)}
	}
	if len(set) > 0 && !t.quiet {
		fmt.Fprintf(t.stderr, "mcompress: %s: --%s\n", path, strings.Join(set, " --"))
	}
	return nil
}

// policyPath is the path of the policy; "" if there is none.
func (t *tool) policyPath() (string, error) {
	switch t.policy {
	case "none":
		return "", nil
	case "":
		return findPolicy()
	}
	return t.policy, nil
}

// findPolicy looks in the working folder, and in those above it up to the one with .git.
func findPolicy() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	inRepository := ""
	for at := dir; ; at = filepath.Dir(at) {
		path := filepath.Join(at, policyName)
		st, err := os.Stat(path)
		switch {
		// A pipe would be waited for. One that the user names is read.
		case err == nil && !st.Mode().IsRegular():
			return "", usagef("%s is not a regular file; name another one with --policy", path)
		case err == nil && at == dir:
			return policyName, nil
		// Only in a repository, which .git ends: a file of a home folder or of /tmp is about other models.
		case err == nil && inRepository == "":
			inRepository = path
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			if inRepository == "" {
				return "", nil
			}
			return filepath.Rel(dir, inRepository)
		}
		if at == filepath.Dir(at) {
			return "", nil
		}
	}
}

// applied sets the flags of a policy and returns them with their values.
func applied(text []byte, fs *flag.FlagSet) ([]string, error) {
	var p policy
	if err := bounded.StrictYAML(text, &p); err != nil {
		return nil, err
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var set []string
	add := func(name, value string) error {
		if fs.Lookup(name) == nil || given[name] {
			return nil
		}
		set = append(set, name+" "+value)
		return fs.Set(name, value)
	}
	relative := false
	for _, item := range p.Gates {
		name, value := fmt.Sprint(item.Key), fmt.Sprint(item.Value)
		if !slices.Contains(report.GateNames(), name) {
			return nil, fmt.Errorf("unknown gate %q%s", name, didYouMean(name, report.GateNames()))
		}
		if err := add(name, value); err != nil {
			return nil, fmt.Errorf("invalid value %q of gate %s: %w", value, name, err)
		}
		relative = relative || report.Relative(name)
	}
	if f := fs.Lookup("baseline"); p.Baseline != "" && relative && f != nil && !given["baseline"] {
		b, ok := f.Value.(*baselineFlag)
		if !ok {
			return nil, fmt.Errorf("%T is not the flag of a baseline", f.Value)
		}
		// A report has the baseline that its run was compared with; that of the policy may be a later one.
		if !b.recorded {
			if err := checkRegular(p.Baseline); err != nil {
				return nil, fmt.Errorf("baseline: %w", err)
			}
			set = append(set, "baseline "+p.Baseline)
			b.source, b.policy = p.Baseline, true
		}
	}
	if p.AllowRandom {
		if err := add("allow-random-inputs", "true"); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// checkRegular returns an error for a device or pipe, which the policy of a repository of others may name. What does not
// exist is an error of the run.
func checkRegular(path string) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", path)
	}
	return nil
}
