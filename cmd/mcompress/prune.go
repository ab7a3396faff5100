package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/distill"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
)

func pruneCommand(t *tool) *cli.Command {
	then := &mcli.Enum{Words: []string{quantize.WeightInt4{}.Method().Name}}
	return methodCommand{
		more: func(fs *flag.FlagSet, _ *mcli.Enum, _ *requestFlags) {
			fs.Var(then, "then", "`method` that quantizes what sparsegpt prunes, in the same run: weight-int4 (with --algo gptq, and scales that keep zeros)")
		},
		then: func(name string, o *mcli.MethodOptions) ([]pass.Options, error) {
			if then.Value == "" {
				return nil, nil
			}
			if name != (prune.SparseGPT{}).Method().Name {
				return nil, usagef("--then requires --method sparsegpt, not %s", name)
			}
			step, err := pass.NewStep(quantize.WeightInt4{}.Method(), func(fs *flag.FlagSet) error {
				for _, set := range [][2]string{{"algo", "gptq"}, {"search", "minmax"}} {
					if err := fs.Set(set[0], set[1]); err != nil {
						return err
					}
				}
				return o.Fill(fs)
			})
			if err != nil {
				return nil, &usageError{err}
			}
			return []pass.Options{step}, nil
		},
		command: "prune",
		usage:   "prune weights, channels and layers; low-rank factorization",
		choose:  "method",
		method:  "l1",
		gradual: true,
	}.build(t)
}

// inSteps returns the step that prunes by the named method in steps, with training after each. Options that both have are those of the
// pruning method, but for the selection of weights.
func inSteps(name string, o *mcli.MethodOptions) (pass.Options, error) {
	method, step := pass.Flags(o.Method(name)), distill.Iterative{}.Method()
	pruning := []string{name}
	made, err := pass.NewStep(step, func(fs *flag.FlagSet) error {
		var own []string
		for _, g := range o.Given() {
			if method.Lookup(g.Name) != nil && !distill.SelectsWeights(g.Name) {
				pruning = append(pruning, g.Name+"="+g.Value)
				own = append(own, g.Name)
			}
		}
		if err := fs.Set("prune", strings.Join(pruning, " ")); err != nil {
			return fmt.Errorf("--schedule: %w", err)
		}
		return o.Fill(fs, own...)
	})
	return made, err
}
