package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/distill"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
)

func pruneCommand(t *tool) *cli.Command {
	return methodCommand{
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
