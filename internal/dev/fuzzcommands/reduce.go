package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dev/modelgen"
)

// attempts is the most models that a reduction tries.
const attempts = 120

// keepReduced makes the model and the command of a finding small while the kind of the finding stays, and keeps both in
// a folder of the kind. Of one kind the first few are kept.
func (f *fuzzer) keepReduced(ctx context.Context, c *generatedCase) error {
	k := kind(c.finding)
	h := fnv.New32a()
	h.Write([]byte(k))
	group := filepath.Join(f.dir, "findings", fmt.Sprintf("%08x", h.Sum32()))
	if before, err := os.ReadDir(group); err == nil && len(before) >= 6 { // two entries each
		return nil
	}
	note := fmt.Sprintf("%s\nbefore the reduction: %s", strings.Join(c.model.Traits, ", "), c.note())
	best, left := c, attempts
	for {
		smaller := f.smaller(ctx, best, k, &left)
		if smaller == nil || ctx.Err() != nil {
			break
		}
		if best != c {
			os.RemoveAll(best.dir)
		}
		best = smaller
	}
	defer func() {
		if best != c {
			os.RemoveAll(best.dir)
		}
	}()
	folder := filepath.Join(group, fmt.Sprintf("%d-%d", f.seed, c.number))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return errors.Join(best.place(&testCase{dir: folder}, best.model),
		os.WriteFile(folder+".txt", []byte(best.note()+"\n"+note), 0o644))
}

// smaller is the first reduction of c with a finding of that kind, nil without one.
func (f *fuzzer) smaller(ctx context.Context, c *generatedCase, k string, left *int) *generatedCase {
	for args := range c.simplerCommands() {
		if *left--; *left < 0 {
			return nil
		}
		if s := f.same(ctx, c, c.model, args, k); s != nil {
			return s
		}
	}
	for m := range modelgen.Reductions(c.model) {
		if m.Size() >= c.model.Size() {
			continue
		}
		if *left--; *left < 0 {
			return nil
		}
		if s := f.same(ctx, c, m, c.args, k); s != nil || ctx.Err() != nil {
			return s
		}
	}
	return nil
}

// same is the case of a model and a command if it has a finding of that kind.
func (f *fuzzer) same(ctx context.Context, c *generatedCase, m *modelgen.Model, args []string,
	k string) *generatedCase {
	dir, err := os.MkdirTemp("", "fuzzcommands")
	if err != nil {
		return nil
	}
	s := &generatedCase{
		testCase: &testCase{number: c.number, dir: dir, random: rand.New(rand.NewPCG(f.seed, uint64(c.number))),
			args: args, method: c.method, words: words(args), always: true},
		f: f, worker: c.worker, model: m, target: c.target, recipe: c.recipe,
	}
	if err := s.write(); err == nil {
		s.test(ctx)
	}
	if kind(s.finding) == k {
		return s
	}
	os.RemoveAll(dir)
	return nil
}

// words are the options of the method in a command.
func words(args []string) []string {
	var list []string
	for _, a := range args {
		if w, ok := strings.CutPrefix(a, "--"); ok && strings.Contains(w, "=") {
			list = append(list, w)
		}
	}
	return list
}

// simplerCommands are the command without one of its options.
func (c *generatedCase) simplerCommands() func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for i, a := range c.args {
			if a == "--no-verify" || strings.HasPrefix(a, "--") && strings.Contains(a, "=") {
				if !yield(slices.Delete(slices.Clone(c.args), i, i+1)) {
					return
				}
			}
			if a == "--target" && !yield(slices.Delete(slices.Clone(c.args), i, i+2)) {
				return
			}
		}
	}
}
