package main

import (
	"flag"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/report"
)

// A gateFlag is the flag of a gate, and its key in a policy.
type gateFlag struct {
	name     string
	parse    func(string) (float64, error)
	usage    string
	relative bool // to a baseline
}

// gateFlags are the flags of all gates, in the order of help.
var gateFlags = []gateFlag{
	{"require-coverage", mcli.Fraction, "minimum `fraction` of the bytes of weights that is compressed, from 0 to 1", false},
	{"min-ratio", mcli.Factor, "minimum compression ratio, a `factor`", false},
	{"max-size", mcli.Bytes, "maximum `size` of the files of the result", false},
	{"min-sqnr", mcli.Decibels, "minimum output SQNR in `decibels`, of every float output", false},
	{"min-cosine", mcli.Fraction, "minimum `cosine` similarity of every float output", false},
	{"min-agreement", mcli.Fraction, "minimum top-1 agreement, a `fraction` of the samples", false},
	{"max-accuracy-drop", mcli.Fraction, "maximum accuracy drop, a `fraction` of the samples (0.01 is 1 point); requires data with labels", false},
	{"max-metric-drop", mcli.Decimal, "maximum drop of --metric or --evaluator, a `number` in its unit", false},
	{"max-latency-ratio", mcli.Factor, "maximum time of a run divided by that of the source, a `factor`: minimum of interleaved runs by --backend", false},
	{"max-baseline-size-ratio", mcli.Factor, "maximum size of the files divided by that of --baseline, a `factor`", true},
	{"max-baseline-metric-drop", mcli.Decimal, "maximum drop of --metric, --evaluator or else accuracy below --baseline, a `number` in its unit, on the same samples", true},
	{"max-baseline-latency-ratio", mcli.Factor, "maximum time of a run divided by that of --baseline, a `factor`; both relative to the source if it is the same", true},
}

// declareGates declares the flags of the gates that are wanted.
func declareGates(fs *flag.FlagSet, to *[]report.Limit, wanted func(gateFlag) bool) {
	for _, g := range gateFlags {
		if wanted(g) {
			fs.Var(&mcli.Gate{Name: g.name, Parse: g.parse, To: to}, g.name, g.usage)
		}
	}
}

func everyGate(gateFlag) bool { return true }

// onFiles reports whether a gate needs no run of the models.
func onFiles(g gateFlag) bool { return !g.relative && report.KindOf(g.name) == report.OnFiles }

// onRuns reports whether a gate needs a run of both models.
func onRuns(g gateFlag) bool { return !g.relative && report.KindOf(g.name) != report.OnFiles }

// allowRandomFlag declares the flag that accepts gates on outputs of random inputs.
func allowRandomFlag(fs *flag.FlagSet, to *bool) {
	fs.BoolVar(to, "allow-random-inputs", false, "accept gates on outputs without --data, of random inputs, which are no evidence of accuracy")
}
