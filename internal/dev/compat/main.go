package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

func main() {
	only := flag.String("only", "", "comma-separated names of runtimes, variants and models to measure; all of a kind without a name of it")
	seconds := flag.Float64("seconds", 0.5, "time of interleaved runs of each file in each runtime")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, selection(*only), *seconds); err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

// A selection is comma-separated names. A comma before a space is part of a name.
type selection string

func (s selection) has(name string) bool {
	masked := func(text string) string { return strings.ReplaceAll(text, ", ", "; ") }
	return slices.Contains(strings.Split(masked(string(s)), ","), masked(name))
}

// filter returns those of the items whose names are selected, all of them if none is.
func filter[T any](s selection, items []T, name func(T) string) []T {
	found := slices.DeleteFunc(slices.Clone(items), func(item T) bool { return !s.has(name(item)) })
	if len(found) == 0 {
		return items
	}
	return found
}

// run measures and writes results and page.
func run(ctx context.Context, only selection, seconds float64) error {
	root, err := conform.Root()
	if err != nil {
		return err
	}
	measured := filter(only, variants(), func(v variant) string { return v.Name })
	in := filter(only, runtimes(), func(r runtime) string { return r.Name })
	name := func(m model) string { return m.Name }
	all, err := (&sweep{models: selected(only, models(), largeModels(""), name), variants: measured, runtimes: in,
		seconds: seconds}).results(ctx, allResults)
	if err != nil {
		return err
	}
	in = slices.DeleteFunc(slices.Clone(in), func(r runtime) bool { return !r.measuresMemory() })
	memory, err := (&sweep{models: selected(only, largeModels(""), models(), name),
		variants: filter(only, memoryVariants(), func(v variant) string { return v.Name }), runtimes: in,
		memory: true}).results(ctx, memoryResults)
	if err != nil {
		return err
	}
	slow, err := slowdowns(all)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(root, "docs", "compatibility.md"), []byte(page(all, memory)), 0o644),
		os.WriteFile(filepath.Join(root, "pass", "slowdowns.go"), slow, 0o644))
}

// selected are the selected models of a sweep: none if only models of the other sweep are.
func selected(only selection, of, others []model, name func(model) string) []model {
	if slices.ContainsFunc(others, func(m model) bool { return only.has(m.Name) }) &&
		!slices.ContainsFunc(of, func(m model) bool { return only.has(m.Name) }) {
		return nil
	}
	return filter(only, of, name)
}

// results resumes an interrupted run, reports cells that are worse than the committed ones and writes those of the
// name, which it returns.
func (s *sweep) results(ctx context.Context, name string) (*matrix, error) {
	path, err := resultsPath(name)
	if err != nil {
		return nil, err
	}
	committed, err := readMatrix(path)
	if err != nil || len(s.models) == 0 {
		return committed, err
	}
	root, err := conform.Root()
	if err != nil {
		return nil, err
	}
	s.partial = filepath.Join(root, ".compat", "unfinished-"+name)
	if s.matrix, err = readMatrix(s.partial); err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	for _, line := range regressions(committed, s.matrix) {
		fmt.Println(line)
	}
	committed.merge(s.matrix)
	if err := committed.write(path); err != nil {
		return nil, err
	}
	return committed, os.Remove(s.partial)
}
