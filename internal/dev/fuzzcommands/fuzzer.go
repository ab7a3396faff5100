package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir/operator"
)

// A fuzzer runs cases.
type fuzzer struct {
	dir, shared string
	seed        uint64
	memory      int64
	limit       time.Duration
	workers     int
	cover       bool
	generated   bool // models are generated, not mutated
	built       bool // the programs in dir are run, not built again
	start, end  int  // the first case, and the one before which all runs end; 0 for none

	program string
	pieces  string   // the program with the build tag invariants, which writes weights in small pieces
	models  []string // to be mutated

	mu          sync.Mutex
	state       state
	interrupted []int     // cases that an earlier run has begun and this one has not
	resumed     time.Time // when state.Seconds was right
}

func (f *fuzzer) run(ctx context.Context, duration time.Duration, only int) (findings int, err error) {
	if err := f.prepare(ctx); err != nil {
		return 0, err
	}
	if only >= 0 {
		c, err := f.test(ctx, only, &conform.Worker{})
		fmt.Printf("%s\nexit code %d\n%s%s\n", strings.Join(c.args, " "), c.code, c.output, c.finding)
		return 0, err
	}
	if err := f.load(); err != nil {
		return 0, err
	}
	cases, before := f.state.Cases, f.state.findings()
	limited, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	g, limited := errgroup.WithContext(limited)
	for range f.workers {
		g.Go(func() error { return f.work(ctx, limited) })
	}
	err = g.Wait()
	s := &f.state
	fmt.Printf("%d cases, %d findings; all runs: %d cases, the next is %d, %.1f a minute, %.0f s, %d findings of %d kinds, exit codes 0 to 4: %v, others: %d\n",
		s.Cases-cases, s.findings()-before, s.Cases, s.Next, 60*float64(s.Cases)/max(s.Seconds, 1), s.Seconds,
		s.findings(), len(s.Findings), s.Codes[:5], s.Codes[7])
	for _, k := range slices.Sorted(maps.Keys(s.Findings)) {
		fmt.Printf("%d × %s: cases %v\n", len(s.Findings[k]), k, s.Findings[k])
	}
	if f.generated {
		f.printOperators()
	}
	return s.findings() - before, errors.Join(err, f.coverage(ctx))
}

// printOperators prints the cases by command, and which operators of the table the models had.
func (f *fuzzer) printOperators() {
	for _, name := range slices.Sorted(maps.Keys(f.state.Commands)) {
		fmt.Printf("%d %s, ", f.state.Commands[name], name)
	}
	var missing []string
	// of training steps
	all := slices.DeleteFunc(operator.Names(), func(name string) bool { return strings.HasPrefix(name, "mcompress.") })
	for _, name := range all {
		if f.state.Operators[name] == 0 {
			missing = append(missing, name)
		}
	}
	fmt.Printf("operators: %d, %d of the %d of the table; not generated: %s\n", len(f.state.Operators),
		len(all)-len(missing), len(all), strings.Join(missing, " "))
}

// prepare builds the programs, and finds the models.
func (f *fuzzer) prepare(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(f.dir, "findings"), 0o755); err != nil {
		return err
	}
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	f.dir, f.program = dir, filepath.Join(dir, "mcompress")
	if f.generated {
		f.pieces = f.program + "-invariants"
	} else if f.models, err = corpus(f.shared); err != nil {
		return err
	}
	if f.built {
		return nil
	}
	var args []string
	if f.cover {
		args = append(args, "-cover", "-coverpkg=./...")
		if err := os.MkdirAll(f.coverDir(), 0o755); err != nil {
			return err
		}
	}
	err = build(ctx, f.program, args...)
	if f.pieces != "" {
		err = errors.Join(err, build(ctx, f.pieces, "-tags", "invariants"))
	}
	return err
}

// build builds the program. Models have its version, and the library, which is linked into this one, must write the
// same: go run records no revision.
func build(ctx context.Context, path string, args ...string) error {
	args = append([]string{"build", "-buildvcs=false", "-o", path}, append(args, "./cmd/mcompress")...)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}

func (f *fuzzer) coverDir() string { return filepath.Join(f.dir, "coverage") }

// coverage prints the fraction of the statements that the cases executed.
func (f *fuzzer) coverage(ctx context.Context) error {
	if !f.cover {
		return nil
	}
	out, err := exec.CommandContext(context.WithoutCancel(ctx), "go", "tool", "covdata", "percent",
		"-i", f.coverDir()).CombinedOutput()
	fmt.Printf("%s", out)
	return err
}

// work tests one case after the other until limited ends.
func (f *fuzzer) work(ctx, limited context.Context) error {
	oracle := &conform.Worker{}
	for limited.Err() == nil {
		i, ok := f.next()
		if !ok {
			return nil
		}
		c, err := f.test(ctx, i, oracle)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("case %d: %w", i, err)
		}
		if c.finding != "" {
			fmt.Printf("case %d: %s\n  %s\n", i, c.finding, strings.Join(c.args, " "))
		}
		if err := f.count(c); err != nil {
			return err
		}
	}
	return nil
}

// test makes and runs case i. The model of a finding is kept.
func (f *fuzzer) test(ctx context.Context, i int, oracle *conform.Worker) (*testCase, error) {
	dir, err := os.MkdirTemp("", "fuzzcommands")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if f.generated {
		c, err := f.generate(i, dir, oracle)
		if err != nil {
			return nil, err
		}
		c.label, c.operators = c.what(), c.model.Operators()
		if c.test(ctx); c.finding == "" || ctx.Err() != nil {
			return c.testCase, nil
		}
		return c.testCase, f.keepReduced(ctx, c)
	}
	c := &testCase{number: i, dir: dir, random: rand.New(rand.NewPCG(f.seed, uint64(i)))}
	if err := c.make(ctx, f.models); err != nil {
		return nil, err
	}
	if c.run(ctx, f); c.finding == "" {
		return c, nil
	}
	text, err := os.ReadFile(c.model())
	if err != nil {
		return nil, err
	}
	name := filepath.Join(f.dir, "findings", fmt.Sprintf("%d-%d", f.seed, i))
	return c, errors.Join(os.WriteFile(name+".onnx", text, 0o644), os.WriteFile(name+".txt", []byte(c.note()), 0o644))
}

func (c *testCase) note() string {
	return fmt.Sprintf("%s\n%s\nexit code %d\n%s\n", c.finding, strings.Join(c.args, " "), c.code, c.output)
}

// corpus are the models to be mutated: the fixtures, and the shared models and hostile files up to 1 MiB.
func corpus(shared string) ([]string, error) {
	var all []string
	for _, root := range []string{"fixtures", filepath.Join(shared, "fixtures", "models"),
		filepath.Join(shared, "hostile")} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".onnx" {
				return err
			}
			if info, err := d.Info(); err != nil || info.Size() > 1<<20 {
				return err
			}
			all = append(all, path)
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(os.Stderr, "fuzzcommands: no models in %s: only those of fixtures are mutated\n", root)
		} else if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no models: run in the folder of the module")
	}
	return all, nil
}
