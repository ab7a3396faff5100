package main

import (
	"errors"
	"flag"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/report"
)

// verificationFlags are the flags of comparing two models, and the gates on the result.
type verificationFlags struct {
	sampling
	*backendFlags
	metricFlags
	scores   string
	noLayers bool

	allowRandom bool // gates on outputs of random inputs
}

func newVerificationFlags() *verificationFlags {
	return &verificationFlags{backendFlags: newBackendFlags()}
}

func (p *verificationFlags) flags(more func(*flag.FlagSet)) []cli.Flag {
	return slices.Concat(p.sampling.flags(), group("running models", func(fs *flag.FlagSet) {
		p.backendFlags.declare(fs)
		fs.StringVar(&p.scores, "scores", "", "`output` with classes or scores (default: the first suitable one)")
		fs.BoolVar(&p.noLayers, "no-layers", false, "compare outputs only, not the layers")
		p.metricFlags.declare(fs)
		if more != nil {
			more(fs)
		}
	}))
}

// declareRandom declares the flag that accepts gates on random inputs.
func (p *verificationFlags) declareRandom(fs *flag.FlagSet) {
	allowRandomFlag(fs, &p.allowRandom)
}

// fill sets the fields of the flags in v.
func (p *verificationFlags) fill(v *mcompress.Verification) error {
	p.sampling.fill(v)
	v.AllowRandomInputs, v.Scores, v.NoLayers = p.allowRandom, p.scores, p.noLayers
	v.Backend, v.Library, v.WeightCache = p.backend.Value, p.library, p.cache
	return p.metricFlags.fill(v)
}

func verifyCommand(t *tool) *cli.Command {
	var gates []report.Limit
	p := newVerificationFlags()
	var rtol, atol *float64
	tolerance := func(p **float64) func(string) error {
		return func(text string) error {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || !(x >= 0) {
				return errors.New("must be a number, not negative")
			}
			*p = &x
			return nil
		}
	}
	return &cli.Command{
		Name:      "verify",
		Usage:     "run two models on the same samples, or one on recorded outputs, and compare their outputs",
		ArgsUsage: "A [B]",
		Description: `Compares B with A: the error of each output and of each layer, top-1 agreement, with labels the
accuracy of both, and the metric of --metric or --evaluator. A alone is compared with the outputs recorded in the data: an error above
--atol + --rtol·|recorded| is exit code 3. The defaults are 1e-5 and 1e-3 for float32 and double, 0.001 and
0.004 for float16, 0.008 and 0.03 for bfloat16, and 0 for integers.`,
		Flags: slices.Concat(p.flags(nil), group("recorded outputs", func(fs *flag.FlagSet) {
			fs.Func("rtol", "relative tolerance of recorded outputs, a `fraction` (default: by element type)", tolerance(&rtol))
			fs.Func("atol", "absolute tolerance of recorded outputs, a `number` (default: by element type)", tolerance(&atol))
		}), group("gates (if one does not hold: exit code 3)", func(fs *flag.FlagSet) {
			declareGates(fs, &gates, onRuns)
			p.declareRandom(fs)
		})),
		Action: func(c *cli.Context) error {
			models, err := arguments(c, 1, 2)
			if err != nil {
				return err
			}
			r := mcompress.Request{Models: models, Gates: gates, Limits: t.requestLimits(), Events: t.events(c.Command.Name)}
			if err := p.fill(&r.Verification); err != nil {
				return err
			}
			r.Verification.Relative, r.Verification.Absolute = rtol, atol
			return t.verify(c, r)
		},
	}
}

// recordedGate are the gates of f, and the tolerance of recorded outputs where a single model is compared with them.
func recordedGate(f mcli.Verification) []report.Gate {
	if f.B != "" || len(f.Result.Outputs) == 0 {
		return f.Gates
	}
	return append(slices.Clone(f.Gates), report.Gate{Name: "tolerance", Held: f.Result.Beyond == "", Reason: f.Result.Beyond})
}

func (t *tool) verify(c *cli.Context, r mcompress.Request) error {
	compared, err := r.Verify(c.Context)
	if err != nil {
		return err
	}
	f := mcli.Verification{A: mcli.Shown(r.Models[0]), Result: compared.Result, Gates: compared.Gates}
	if len(r.Models) > 1 {
		f.B = mcli.Shown(r.Models[1])
	}
	f.Verdict = report.NewVerdict(recordedGate(f), compared.Result)
	print := f.Text
	if t.json {
		print = f.JSON
	}
	if err := print(t.stdout, t.style()); err != nil {
		return err
	}
	if !compared.Passed() {
		return exit{exitGate}
	}
	return nil
}
