package main

import "flag"

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
