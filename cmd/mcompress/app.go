package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
)

// run runs the program with the given arguments and streams, and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	t := newTool(stdout, stderr)
	app := t.app()
	if len(args) > 1 && args[1] == completeCommand {
		return finish(ctx, stderr, complete(stdout, app, args[2:]))
	}
	if len(args) > 1 && args[1] == measureCommand {
		return finish(ctx, stderr, measureHere(ctx, os.Stdin, stdout))
	}
	line, err := mcli.Arrange(syntax(app), args[1:])
	if err != nil {
		return finish(ctx, stderr, &usageError{err})
	}
	return finish(ctx, stderr, app.RunContext(ctx, append(args[:1:1], line...)))
}

func (t *tool) app() *cli.App {
	app := &cli.App{
		Name:                  "mcompress",
		HelpName:              "mcompress",
		Usage:                 "Compresses ONNX models, accounts for every byte, and measures the accuracy cost by running both models.",
		HideVersion:           true,
		Flags:                 t.globalFlags(),
		CustomAppHelpTemplate: appHelp,
		Writer:                t.stdout,
		ErrWriter:             t.stderr,
		OnUsageError:          onUsageError,
		ExitErrHandler:        func(*cli.Context, error) {}, // run maps errors to exit codes
		Before:                t.begin,
		Action:                unknownCommand,
		Commands: []*cli.Command{
			t.quantizeCommand(),
			t.pruneCommand(),
			t.sparseCommand(),
			t.distillCommand(),
			t.finetuneCommand(),
			t.applyCommand(),
			t.inspectCommand(),
			t.benchCommand(),
			t.memoryCommand(),
			t.splitCommand(),
			t.reportCommand(),
			t.verifyCommand(),
			t.versionCommand(),
			t.completionCommand(),
		},
	}
	for _, c := range app.Commands {
		c.HideHelpCommand = true
		c.OnUsageError = onUsageError
		c.CustomHelpTemplate = commandHelp
		c.Action = named(c.Name, c.Action)
	}
	return app
}

// named prefixes the errors of a command with its name.
func named(command string, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := action(c); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		return nil
	}
}

func unknownCommand(c *cli.Context) error {
	if !c.Args().Present() {
		return cli.ShowAppHelp(c)
	}
	name := c.Args().First()
	return usagef("unknown command %q%s; see mcompress --help", name, didYouMean(name, commandNames(c.App)))
}

func onUsageError(c *cli.Context, err error, isCommand bool) error {
	text := err.Error()
	flags := c.App.Flags
	if isCommand {
		flags = c.Command.Flags
	}
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		name = strings.TrimPrefix(name, "-")
		text = "unknown flag --" + name + didYouMean("--"+name, flagNames(flags))
	}
	text = strings.Replace(text, "flag needs an argument: -", "flag needs a value: --", 1)
	text = shortOrLong(text, " for flag -")
	if isCommand {
		text = c.Command.Name + ": " + text
	}
	return usagef("%s", text)
}

// shortOrLong writes the flag after mark as -o or --output.
func shortOrLong(text, mark string) string {
	before, after, found := strings.Cut(text, mark)
	switch name, _, _ := strings.Cut(after, ":"); {
	case !found:
		return text
	case len(name) == 1:
		return before + " for -" + after
	}
	return before + " for --" + after
}

func didYouMean(word string, words []string) string {
	near := mcli.Nearest(word, words)
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

func flagNames(flags []cli.Flag) []string {
	var ns []string
	for _, f := range flags {
		ns = append(ns, "--"+f.Names()[0])
	}
	return ns
}

// arguments are a command's positional arguments, between min and max of them.
func arguments(c *cli.Context, min, max int) ([]string, error) {
	args := c.Args().Slice()
	switch {
	case len(args) < min:
		return nil, usagef("%s expected; see mcompress %s --help", c.Command.ArgsUsage, c.Command.Name)
	case len(args) > max:
		return nil, usagef("%q is an unexpected argument; see mcompress %s --help", args[max], c.Command.Name)
	}
	return args, nil
}

// syntax returns the flags of app as required to order its arguments.
func syntax(app *cli.App) mcli.Syntax {
	s := mcli.Syntax{Global: takes(app.Flags), Commands: map[string]map[string]bool{}, Topics: map[string]string{}}
	for _, c := range app.Commands {
		s.Commands[c.Name] = takes(c.Flags)
		for _, f := range c.Flags {
			if _, ok := f.(*option).Value.(*methodChoice); ok {
				s.Topics[c.Name] = f.(*option).Name
			}
		}
	}
	return s
}

// takes reports for each name of a flag whether it has a value.
func takes(flags []cli.Flag) map[string]bool {
	names := map[string]bool{}
	for _, f := range flags {
		o := f.(*option)
		for _, name := range o.Names() {
			names[name] = !mcli.IsBool(o.Flag)
		}
	}
	return names
}
