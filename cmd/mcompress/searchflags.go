package main

import (
	"flag"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
)

// searchFlags are the flags of mixed precision by measurement.
type searchFlags struct {
	auto, sensitivity bool
	candidates        mcli.Words
	size              mcli.Size
	ratio             float64
}

func (a *searchFlags) flags() []cli.Flag {
	return group("mixed precision by measurement", func(fs *flag.FlagSet) {
		fs.BoolVar(&a.auto, "auto", false, "mixed precision: choose the method of each weight by its measured sensitivity; the smallest file within the gates on outputs, or with --target-size the most accurate one of that size")
		fs.BoolVar(&a.sensitivity, "sensitivity", false, "print the sensitivity of each weight to each method, write nothing")
		fs.Var(&a.candidates, "candidates", "comma-separated candidate `methods`, each with its options as in weight-int4:block=64:algo=hqq (default: static-int8 with --data, dynamic-int8, weight-int8, weight-int4 and weight-int2 in blocks of two sizes, palette of 4 and 16 entries, float16)")
		fs.Var(&a.size, "target-size", "maximum file `size` for --auto")
		fs.Float64Var(&a.ratio, "target-ratio", 0, "compression ratio for --auto, a `factor`")
	})
}

// requested reports whether a search or a sensitivity analysis is requested.
func (a *searchFlags) requested() (bool, error) {
	if a.auto || a.sensitivity {
		return true, nil
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"candidates", a.candidates != nil}, {"target-size", a.size > 0}, {"target-ratio", a.ratio != 0}} {
		if f.given {
			return false, usagef("--%s requires --auto", f.name)
		}
	}
	return false, nil
}

// run searches methods for each model and compresses it, or prints the sensitivities.
func (a *searchFlags) run(c *cli.Context, t *tool, o *mcli.MethodOptions, models []string, w *requestFlags, test testSet) error {
	w.Search = &mcompress.Search{Candidates: a.candidates, Options: o.Given(), MaxSize: int64(a.size), MinRatio: a.ratio}
	if a.sensitivity {
		test = testSet{} // nothing is verified
	}
	if err := w.samples.adopt(o.Given(), test); err != nil {
		return err
	}
	if !a.sensitivity {
		if s := &w.samples.sampling; s.data == "" && s.random == 0 {
			s.random = mcompress.RandomSearchSamples // the result is verified on the samples of the search
		}
		w.Label = "auto"
		return w.run(c, t, models)
	}
	for _, name := range listNames {
		if c.IsSet(name) {
			return usagef("--sensitivity and --%s exclude each other", name)
		}
	}
	r, err := w.request(t, c.Command.Name, models)
	if err != nil {
		return err
	}
	if t.planned != nil {
		t.planned.Request, t.planned.Sensitivities = r, true
		return nil
	}
	p := &sensitivityPrinter{tool: t, command: c.Command.Name, several: len(models) > 1}
	_, err = r.Sensitivities(c.Context, p.print)
	if err != nil {
		return err
	}
	return ended(p.codes)
}

// A sensitivityPrinter prints sensitivities, or the errors of several models.
type sensitivityPrinter struct {
	*tool
	command string
	several bool
	codes   []int
}

func (p *sensitivityPrinter) print(s mcompress.Sensitivity) error {
	p.codes = append(p.codes, exitCode(s.Err))
	switch {
	case s.Err != nil && p.several:
		printError(p.stderr, withCommand(p.command, s.Err))
		return nil
	case s.Err != nil:
		return s.Err
	case p.json:
		return mcli.SensitivityJSON(p.stdout, p.style(), s.Model, s.Found)
	}
	return mcli.Sensitivity(p.stdout, p.style(), s.Model, s.Found)
}
