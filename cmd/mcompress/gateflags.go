package main

import (
	"flag"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/report"
)

// declareGates declares the flags of the gates that are wanted, each of the name of its gate.
func declareGates(fs *flag.FlagSet, to *[]report.Limit, wanted func(gate string) bool) {
	for _, name := range report.GateNames() {
		if wanted(name) {
			fs.Var(&mcli.Gate{Name: name, To: to}, name, report.GateDoc(name))
		}
	}
}

func everyGate(string) bool { return true }

// onFiles reports whether a gate needs no run of the models.
func onFiles(gate string) bool {
	return !report.Relative(gate) && report.KindOf(gate) == report.OnFiles
}

// onRuns reports whether a gate needs a run of both models.
func onRuns(gate string) bool { return !report.Relative(gate) && report.KindOf(gate) != report.OnFiles }

// allowRandomFlag declares the flag that accepts gates on outputs of random inputs.
func allowRandomFlag(fs *flag.FlagSet, to *bool) {
	fs.BoolVar(to, "allow-random-inputs", false, "accept gates on outputs without --data, of random inputs, which are no evidence of accuracy")
}
