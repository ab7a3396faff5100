package main

import (
	"context"
	"flag"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/report"
)

// baselineFlag is the flag --baseline.
type baselineFlag struct {
	source   string
	policy   bool // the policy names it: it may not exist yet
	recorded bool // the command reads reports, which have their baselines: that of the policy, which may be out of reach, is not read
}

func (b *baselineFlag) declare(flags *flag.FlagSet) {
	flags.Var(b, "baseline", "`report` of an earlier result, the path of its model, or a reference such as mlflow://HOST/NAME@champion, for the gates that name a baseline; none leaves them out")
}

// Set implements flag.Value.
func (b *baselineFlag) Set(text string) error {
	b.source, b.policy = text, false
	return nil
}

// String implements flag.Value.
func (b *baselineFlag) String() string { return b.source }

// load reads the baseline of the gates; nil for none.
func (b *baselineFlag) load(ctx context.Context, t *tool, command string, r mcompress.Registry, gates []report.Limit) (*report.Baseline, error) {
	if b.source == "" && b.recorded {
		return nil, nil
	}
	if err := mcompress.CheckBaseline(gates, b.source); err != nil {
		return nil, err
	}
	return mcompress.LoadBaseline(ctx, b.source, b.policy, r, t.events(command))
}
