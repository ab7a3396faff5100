package main

import (
	"flag"

	"github.com/mcompress/mcompress"
)

// evidenceFlags are the flags of commands that verify reports.
type evidenceFlags struct {
	mcompress.Evidence
	baselineFlag
}

func (e *evidenceFlags) declareSignature(fs *flag.FlagSet) {
	fs.StringVar(&e.Key, "key", "", "public `key` of the signature, a file or env:NAME: elliptic curve as PEM")
	fs.StringVar(&e.Signature, "signature", "", "`path` of the signature (default: NAME.sig next to the model, or model.sig in the folder)")
}

func (e *evidenceFlags) declareGates(fs *flag.FlagSet) {
	declareGates(fs, &e.Gates, everyGate)
	allowRandomFlag(fs, &e.AllowRandomInputs)
	e.baselineFlag.declare(fs)
}

// evidence is that of the flags.
func (e *evidenceFlags) evidence(t *tool, command string) mcompress.Evidence {
	of := e.Evidence
	of.Baseline, of.BaselineOptional, of.Events = e.source, e.policy, t.events(command)
	return of
}
