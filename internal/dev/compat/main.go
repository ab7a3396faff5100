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

// run measures, resumes an interrupted run, reports worse cells than the committed ones and writes results and page.
func run(ctx context.Context, only selection, seconds float64) error {
	root, err := conform.Root()
	if err != nil {
		return err
	}
	partial := filepath.Join(root, ".compat", "unfinished.json")
	measured, err := readMatrix(partial)
	if err != nil {
		return err
	}
	s := &sweep{
		models:   filter(only, models(), func(m model) string { return m.Name }),
		variants: filter(only, variants(), func(v variant) string { return v.Name }),
		runtimes: filter(only, runtimes(), func(r runtime) string { return r.Name }),
		seconds:  seconds, matrix: measured, partial: partial,
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	path, err := resultsPath()
	if err != nil {
		return err
	}
	committed, err := readMatrix(path)
	if err != nil {
		return err
	}
	for _, line := range regressions(committed, measured) {
		fmt.Println(line)
	}
	committed.merge(measured)
	if err := committed.write(path); err != nil {
		return err
	}
	slow, err := slowdowns(committed)
	if err != nil {
		return err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(root, "docs", "compatibility.md"), []byte(page(committed)), 0o644),
		os.WriteFile(filepath.Join(root, "pass", "slowdowns.go"), slow, 0o644))
	if err != nil {
		return err
	}
	return os.Remove(partial)
}
