package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
)

func applyCommand(t *tool) *cli.Command {
	w := newRequestFlags()
	var test testSet
	return &cli.Command{
		Name:      "apply",
		Usage:     "run the steps of a recipe, in one pass over each model",
		ArgsUsage: "RECIPE.yaml MODEL...",
		Description: `A recipe is a list of methods with their options, as docs/methods.md names them:

  steps:
    - method: l1
      amount: 0.5
      skip: ["*.bias"]
    - method: dynamic-int8
    - method: auto
  target: ort-1.20,any
  strip-metadata: true
  keep-ir: true
  data-files: 16

The report of quantize --auto has such a recipe; apply reproduces the file from it. Relative paths
of data are relative to the working folder. A recipe writes no files but the outputs.`,
		Flags: slices.Concat(w.target.flags(), w.flags(), test.flags(), w.list.flags()),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, math.MaxInt)
			if err != nil {
				return err
			}
			models, err := w.list.models(c, args[1:])
			if err != nil {
				return err
			}
			recipe, err := w.target.readRecipe(c.Context, args[0])
			if err != nil {
				return err
			}
			w.Steps, w.Label = recipe.Steps, recipeName(args[0])
			w.StripMetadata, w.KeepIR, w.DataFiles = w.StripMetadata || recipe.StripMetadata, w.KeepIR || recipe.KeepIR, cmp.Or(w.DataFiles, recipe.DataFiles)
			if err := w.samples.adopt(dataOptions(w.Steps, test), test); err != nil {
				return err
			}
			return w.run(c, t, models)
		},
	}
}

// dataOptions returns the data options of the last step with data, which apply to test samples as well.
func dataOptions(steps []pass.Options, test testSet) []pass.Option {
	var given []pass.Option
	for _, s := range steps {
		options := slices.DeleteFunc(pass.Values(s), func(o pass.Option) bool { return o.Value == "" })
		if test.path != "" && slices.ContainsFunc(options, func(o pass.Option) bool { return o.Name == "data" }) {
			given = options
		}
	}
	return given
}

// readRecipe reads a recipe, and sets its target if none is given.
func (a *targetFlag) readRecipe(ctx context.Context, path string) (*pass.Recipe, error) {
	text, err := readAtMost(ctx, path, pass.MaxRecipe+1)
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = fmt.Errorf("%s: %w", path, pe.Err) // without the name of the system call
	}
	if err != nil {
		return nil, err
	}
	recipe, err := pass.ParseRecipe(methods, text)
	if err == nil && recipe.Target != "" && a.names == "" {
		if err = a.names.Set(recipe.Target); err != nil {
			err = fmt.Errorf("unknown target %q; %w", recipe.Target, err)
		}
	}
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s: %w", mcli.Shown(path), err)}
	}
	return recipe, nil
}

// readAtMost reads the first bytes of a file, of a pipe or of an object at a URL.
func readAtMost(ctx context.Context, path string, bytes int64) ([]byte, error) {
	if mcli.IsURL(path) {
		return mcli.ReadURL(ctx, path, bytes)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, bytes))
}

// recipeName is the recipe's part of outputs' names.
func recipeName(path string) string {
	base := mcli.BaseName(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
