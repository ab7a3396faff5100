package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

func reproduceCommand(t *tool) *cli.Command {
	var inputs string
	return &cli.Command{
		Name:      "reproduce",
		Usage:     "run the recipe of a report on its source, and compare the result with the report",
		ArgsUsage: "REPORT SOURCE",
		Description: `Exit code 0 if all files of the result are bit-identical to those of the report, 3 if not, or if SOURCE or
the files that the recipe reads are not those of the report. Nothing is kept; the result needs space in TMPDIR.`,
		Flags: group("inputs", func(fs *flag.FlagSet) {
			fs.StringVar(&inputs, "inputs", "", "`folder` of the files that the recipe reads (default: the working folder, those of REPORT and SOURCE)")
		}),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 2, 2)
			if err != nil {
				return err
			}
			r, err := openReport(args[0])
			if err != nil {
				return err
			}
			folders := []string{".", filepath.Dir(args[0]), filepath.Dir(args[1])}
			if inputs != "" {
				folders = []string{inputs}
			}
			o, err := t.reproduction(c.Context, r, folders)
			if err != nil {
				return err
			}
			o.Input = args[1]
			files, err := job.Reproduce(c.Context, r, o)
			if err != nil {
				return err
			}
			return t.printReproduction(r, files)
		},
	}
}

// reproduction returns the options of running the recipe of a report with its inputs from the folders.
func (t *tool) reproduction(ctx context.Context, r *report.Report, folders []string) (o job.Options, err error) {
	o = job.Options{Workers: t.workers, Memory: recipeBudget(int64(t.memory)), Limits: t.limits(), Alone: true}
	if r.Recipe == nil {
		return o, nil
	}
	recipe, err := pass.ParseRecipe(methods, []byte(r.Recipe.Text))
	if err != nil {
		return o, fmt.Errorf("the recipe of the report: %w", err)
	}
	paths := map[string]string{}
	for _, in := range r.Recipe.Inputs {
		if paths[in.Name], err = job.FindInput(ctx, in, folders); err != nil {
			return o, err
		}
	}
	text, err := recipe.Text(func(name string) string {
		if path, ok := paths[name]; ok {
			return path
		}
		return name
	})
	if err != nil {
		return o, err
	}
	if recipe, err = pass.ParseRecipe(methods, text); err != nil {
		return o, err
	}
	target := targetFlag{names: targetNames(recipe.Target)}
	o.Steps, o.Strip, o.KeepIR, o.DataFiles = recipe.Steps, recipe.StripMetadata, recipe.KeepIR, recipe.DataFiles
	o.Target, err = target.apply(recipe.Steps)
	return o, err
}

// printReproduction prints each file, and returns exit code 3 if one differs.
func (t *tool) printReproduction(r *report.Report, files []report.File) error {
	different := job.Different(r.Result.Files, files)
	if t.json {
		if err := t.encode(map[string]any{"identical": len(different) == 0, "files": files, "different": different}); err != nil {
			return err
		}
	} else {
		for _, f := range r.Result.Files {
			fmt.Fprintf(t.stdout, "%s: %s\n", f.Name, same(f, different))
		}
		if v := job.Version(); v != r.Tool.Version && len(different) > 0 {
			fmt.Fprintf(t.stdout, "the report is of version %s, this is %s\n", r.Tool.Version, v)
		}
	}
	if len(different) > 0 {
		return exit{exitGate}
	}
	return nil
}

func same(f report.File, different []report.File) string {
	for _, d := range different {
		if d == f {
			return "differs"
		}
	}
	return "identical"
}
