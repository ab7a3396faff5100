package main

import (
	"errors"
	"flag"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/verify"
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
	gates       *[]report.Limit
}

func newVerificationFlags(gates *[]report.Limit) *verificationFlags {
	return &verificationFlags{backendFlags: newBackendFlags(), gates: gates}
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

// outputGate returns the name of a gate that requires verification, or "".
func (p *verificationFlags) outputGate() string {
	return p.gateOf(report.OnOutputs, report.OnTime)
}

// gateOf returns the name of a gate of one of the kinds, or "".
func (p *verificationFlags) gateOf(kinds ...report.GateKind) string {
	for _, l := range *p.gates {
		if slices.Contains(kinds, report.KindOf(l.Name)) {
			return l.Name
		}
	}
	return ""
}

// verification returns the verification settings of the flags.
func (p *verificationFlags) verification(t *tool) (job.Verification, error) {
	samples := p.sampling
	if p.perplexity != "" {
		samples.data, samples.labels, samples.columns, samples.names, samples.classes = p.perplexity, "", nil, nil, nil
	}
	data, err := samples.source(t)
	if err != nil {
		return job.Verification{}, err
	}
	if data.Generated() && slices.ContainsFunc(*p.gates, func(l report.Limit) bool { return l.Name == "max-accuracy-drop" }) {
		return job.Verification{}, usagef("--max-accuracy-drop requires samples with labels: name them with --data")
	}
	measure, err := p.metricFlags.measure(data, *p.gates)
	if err != nil {
		return job.Verification{}, err
	}
	if gate := p.gateOf(report.OnOutputs); data.Generated() && gate != "" && !p.allowRandom {
		return job.Verification{}, usagef("--%s on random inputs is no evidence of accuracy: name samples of the model's task with --data, or add --allow-random-inputs", gate)
	}
	backend, err := p.backendFlags.open(t)
	return job.Verification{Data: data, Backend: backend, Scores: p.scores, Metric: measure, Layers: !p.noLayers && backend.Embedded(), Latency: p.gateOf(report.OnTime) != "", Digest: true}, err
}

func verifyCommand(t *tool) *cli.Command {
	var gates []report.Limit
	p := newVerificationFlags(&gates)
	var near verify.Tolerance
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
			fs.Func("rtol", "relative tolerance of recorded outputs, a `fraction` (default: by element type)", tolerance(&near.Relative))
			fs.Func("atol", "absolute tolerance of recorded outputs, a `number` (default: by element type)", tolerance(&near.Absolute))
		}), group("gates (if one does not hold: exit code 3)", func(fs *flag.FlagSet) {
			declareGates(fs, p.gates, onRuns)
			p.declareRandom(fs)
		})),
		Action: func(c *cli.Context) error {
			models, err := arguments(c, 1, 2)
			if err != nil {
				return err
			}
			v, err := p.verification(t)
			if err != nil {
				return err
			}
			v.Tolerance = near
			return t.verify(c, append(models, "")[:2], v, gates)
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

func (t *tool) verify(c *cli.Context, models []string, v job.Verification, gates []report.Limit) error {
	r, err := job.Verify(c.Context, models[0], models[1], v)
	if err != nil {
		return err
	}
	f := mcli.Verification{A: remote.Shown(models[0]), B: remote.Shown(models[1]), Result: r}
	if f.Gates, err = report.EvaluateGates(r, gates); err != nil {
		return err
	}
	f.Verdict = report.NewVerdict(recordedGate(f), r)
	print := f.Text
	if t.json {
		print = f.JSON
	}
	if err := print(t.stdout, t.style()); err != nil {
		return err
	}
	if r.Beyond != "" || !report.Passed(f.Gates) {
		return exit{exitGate}
	}
	return nil
}
