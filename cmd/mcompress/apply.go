package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/pass"
)

func (t *tool) applyCommand() *cli.Command {
	w := newWriting()
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
  target: any

What quantize --auto finds is such a recipe, too: its report has it, and apply makes the same file of it.`,
		Flags: append(w.target.flags(), w.flags()...),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 2, math.MaxInt)
			if err != nil {
				return err
			}
			steps, err := w.target.readRecipe(args[0])
			if err != nil {
				return err
			}
			return t.compress(c, args[1:], recipeName(args[0]), steps, w)
		},
	}
}

// readRecipe reads steps, and the target if none is given.
func (a *aimed) readRecipe(path string) ([]pass.Options, error) {
	text, err := os.ReadFile(path)
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = fmt.Errorf("%s: %w", path, pe.Err) // without the name of the system call
	}
	if err != nil {
		return nil, err
	}
	steps, target, err := pass.ParseRecipe(methods, text)
	if err == nil && target != "" && a.name.Value == "" {
		if err = a.name.Set(target); err != nil {
			err = fmt.Errorf("unknown target %q; %w", target, err)
		}
	}
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return steps, nil
}

// recipeName is the recipe's part of outputs' names.
func recipeName(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
