package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/ir"
)

// run runs the program with the given arguments and streams, and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	t := newTool(stdout, stderr)
	defer close(t.ended)
	app := t.app()
	switch {
	case len(args) > 1 && args[1] == completeCommand:
		return finish(ctx, t.stderr, complete(t.stdout, app, args[2:]))
	case len(args) > 1 && args[1] == mcompress.MeasureCommand:
		return finish(ctx, t.stderr, mcompress.ServeMeasurement(ctx, os.Stdin, t.stdout))
	case len(args) > 1 && args[1] == mcompress.StageCommand:
		return finish(ctx, t.stderr, mcompress.ServeStage(ctx, os.Stdin, stdout)) // bytes, not text for terminals
	case len(args) > 1 && args[1] == measureTrainingCommand:
		return finish(ctx, t.stderr, serveTrainingMeasurement(ctx, os.Stdin, t.stdout))
	}
	return finish(ctx, t.stderr, runApp(ctx, app, args))
}

// runApp runs the command of args. A panic is an error with an exit code of its own: that of Go's runtime is 2, as of an invalid command line.
func runApp(ctx context.Context, app *cli.App, args []string) (err error) {
	defer ir.Guard(&err)
	return app.RunContext(ctx, args)
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
		OnUsageError:          func(c *cli.Context, err error, _ bool) error { return flagError(err, flagSet(c.App.Flags)) },
		ExitErrHandler:        func(*cli.Context, error) {}, // run maps errors to exit codes
		Action:                t.noCommand,
		Commands: []*cli.Command{
			quantizeCommand(t),
			pruneCommand(t),
			sparseCommand(t),
			distillCommand(t),
			finetuneCommand(t),
			applyCommand(t),
			inspectCommand(t),
			benchCommand(t),
			memoryCommand(t),
			splitCommand(t),
			packCommand(t),
			unpackCommand(t),
			planCommand(t),
			workCommand(t),
			finalizeCommand(t),
			reportCommand(t),
			signCommand(t),
			verifyCommand(t),
			pushCommand(t),
			pullCommand(t),
			verifyReportCommand(t),
			reproduceCommand(t),
			promoteCommand(t),
			versionCommand(t),
			completionCommand(t),
			manCommand(t),
		},
	}
	for _, c := range app.Commands {
		c.SkipFlagParsing, c.HideHelp = true, true // cli/v2 accepts no flags after arguments: parsed parses them
		c.CustomHelpTemplate = commandHelp
		c.Action = t.parsed(c.Action)
	}
	return app
}

// parsed parses the flags of a command and the global ones before action runs, and prefixes errors with the command's name.
func (t *tool) parsed(action cli.ActionFunc) cli.ActionFunc {
	return func(parent *cli.Context) error {
		fs := flagSet(parent.App.Flags, parent.Command.Flags)
		err := mcli.Parse(fs, parent.Args().Slice())
		c := cli.NewContext(parent.App, fs, parent)
		c.Command = parent.Command
		switch {
		case err != nil:
			err = flagError(err, fs)
		case c.Bool("help"):
			err = cli.ShowCommandHelp(c, c.Command.Name)
		default:
			if err := t.begin(c); err != nil {
				return err
			}
			if err = onDisk(c); err == nil {
				// After the command line, whose flags take precedence over gates of a policy.
				err = t.applyPolicy(c.Context, fs)
			}
			if err == nil {
				err = action(c)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Command.Name, err)
		}
		return nil
	}
}

// flagSet returns the set that parses flags.
func flagSet(lists ...[]cli.Flag) *flag.FlagSet {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	for _, f := range slices.Concat(lists...) {
		if err := f.Apply(fs); err != nil {
			panic(err) // cli's --help has a valid default
		}
	}
	return fs
}

// noCommand handles a command line without a known command.
func (t *tool) noCommand(c *cli.Context) error {
	if err := t.begin(c); err != nil {
		return err
	}
	if !c.Args().Present() {
		return cli.ShowAppHelp(c)
	}
	name := c.Args().First()
	return usagef("unknown command %q%s; see mcompress --help", name, didYouMean(name, commandNames(c.App)))
}

// longFlag matches a long flag in an error of package flag, which writes one dash.
var longFlag = regexp.MustCompile(`(: | for )-(\w[\w-]+)`)

// flagError returns an error of package flag with dashes as users write them and a suggestion.
func flagError(err error, fs *flag.FlagSet) error {
	text := strings.Replace(err.Error(), " for flag -", " for -", 1)
	text = longFlag.ReplaceAllString(text, "$1--$2")
	text = strings.Replace(text, "flag needs an argument: ", "flag needs a value: ", 1)
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		text = "unknown flag " + name + didYouMean(name, mcli.FlagNames(fs))
	}
	return usagef("%s", text)
}

func didYouMean(word string, words []string) string {
	near := mcli.Nearest(word, words)
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
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
