// Command mutate measures how many wrong lines the tests notice (mutation testing): it changes one operator, number or
// statement of a package at a time and runs the tests of the package and of the packages that import it. It is a
// development tool and no part of CI.
//
//	go run ./internal/dev/mutate -n 300 ./quantize/... ./prune/...
//
// The sample depends on -seed only. A run that is interrupted resumes: mutants in the file of results are not tested
// again. The source files stay as they are; a mutant is an overlay of the build.
package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	n := flag.Int("n", 300, "`number` of mutants in the sample")
	seed := flag.Uint64("seed", 1, "`seed` of the sample")
	since := flag.String("since", "", "`revision` of Git: mutate only lines that changed since")
	limit := flag.Duration("limit", time.Minute, "time `limit` of the tests of a mutant")
	own := flag.Bool("own", false, "run the tests of the mutant's package only, not those of the packages that import it: faster, and the score is a lower bound")
	out := flag.String("o", ".bench/mutants.jsonl",
		"`file` of results, one JSON object per line; results in it are kept")
	flag.Parse()
	if err := run(ctx, flag.Args(), *n, *seed, *since, *limit, *own, *out); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, patterns []string, n int, seed uint64, since string, limit time.Duration, own bool,
	out string) error {
	packages, err := list(ctx, patterns)
	if err != nil {
		return err
	}
	if own {
		for _, p := range packages {
			p.importers = nil
		}
	}
	lines, err := changedLines(ctx, since)
	if err != nil {
		return err
	}
	sites, err := sites(packages, lines, seed)
	if err != nil {
		return err
	}
	known, err := read(out)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	t := &tester{packages: packages, limit: limit, baseline: map[string]map[string]time.Duration{}}
	sum := map[string]int{}
	for i := 0; i < len(sites) && sum[killed]+sum[survived] < n; i++ {
		r, ok := known[sites[i].key()]
		if !ok {
			if r, err = t.test(ctx, sites[i]); err != nil {
				return err
			}
			if err := json.NewEncoder(f).Encode(r); err != nil {
				return err
			}
		}
		sum[r.Outcome]++
	}
	tested := sum[killed] + sum[survived]
	fmt.Printf("%d sites, %d mutants tested: %d killed, %d survived (score %.1f %%), %d more did not compile\n",
		len(sites), tested, sum[killed], sum[survived], 100*float64(sum[killed])/float64(max(1, tested)), sum[invalid])
	return f.Close()
}

// sites are the mutants of packages in the order of a hash: a change of one file leaves the mutants of others in the
// sample, and the sample of some packages has those of a sample of all.
func sites(packages map[string]*pkg, lines map[string]map[int]bool, seed uint64) ([]mutant, error) {
	var all []mutant
	for _, p := range packages {
		found, err := p.mutants(lines)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	hash := func(m mutant) string {
		h := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.key()))
		return string(h[:])
	}
	slices.SortFunc(all, func(a, b mutant) int { return cmp.Compare(hash(a), hash(b)) })
	return all, nil
}

// read reads the results of earlier runs.
func read(path string) (map[string]result, error) {
	known := map[string]result{}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var r result
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		known[r.Mutant.key()] = r
	}
	return known, nil
}
