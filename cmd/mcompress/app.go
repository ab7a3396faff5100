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
	switch {
	case len(args) > 1 && args[1] == completeCommand:
		return finish(ctx, t.stderr, complete(t.stdout, t.app(), args[2:]))
	case len(args) > 1 && args[1] == mcompress.MeasureCommand:
		return finish(ctx, t.stderr, mcompress.ServeMeasurement(ctx, os.Stdin, t.stdout))
	case len(args) > 1 && args[1] == mcompress.StageCommand:
		return finish(ctx, t.stderr, mcompress.ServeStage(ctx, os.Stdin, stdout)) // bytes, not text for terminals
	case len(args) > 1 && args[1] == measureTrainingCommand:
		return finish(ctx, t.stderr, serveTrainingMeasurement(ctx, os.Stdin, t.stdout))
	}
	// Before anything is done with them: the names of models, destinations and folders are in messages, reports and names of
	// files.
	for _, arg := range args {
		if mcli.HasPassword(arg) {
			return finish(ctx, t.stderr, usagef("%s: a password in an argument is not supported: log in with the client of the "+
				"registry, or use its environment variables", mcli.Shown(arg)))
		}
	}
	return finish(ctx, t.stderr, runApp(ctx, t.appFor(args), args))
}

// runApp runs the command of args. A panic is an error with an exit code of its own: that of Go's runtime is 2, as of an invalid command line.
func runApp(ctx context.Context, app *cli.App, args []string) (err error) {
	defer ir.Guard(&err)
	return app.RunContext(ctx, args)
}

// A namedCommand constructs a command, with its flags, for one run of the program.
type namedCommand struct {
	name  string
	build func(*tool) *cli.Command
}

// commands are all commands, in the order of help.
func commands() []namedCommand {
	return []namedCommand{
		{"quantize", quantizeCommand},
		{"prune", pruneCommand},
		{"sparse", sparseCommand},
		{"distill", distillCommand},
		{"finetune", finetuneCommand},
		{"apply", applyCommand},
		{"inspect", inspectCommand},
		{"bench", benchCommand},
		{"memory", memoryCommand},
		{"split", splitCommand},
		{"pack", packCommand},
		{"unpack", unpackCommand},
		{"plan", planCommand},
		{"work", workCommand},
		{"finalize", finalizeCommand},
		{"report", reportCommand},
		{"sign", signCommand},
		{"verify", verifyCommand},
		{"push", pushCommand},
		{"pull", pullCommand},
		{"verify-report", verifyReportCommand},
		{"reproduce", reproduceCommand},
		{"promote", promoteCommand},
		{"version", versionCommand},
		{"completion", completionCommand},
		{"man", manCommand},
	}
}

// app is the program with all commands.
func (t *tool) app() *cli.App { return t.appOf(commands()) }

// appFor is the program with the commands that args name, of which it runs one. To declare the flags of all commands takes half of the time in
// which the program starts. Help, and an error without a command, are about all.
func (t *tool) appFor(args []string) *cli.App {
	help := slices.ContainsFunc(args, func(arg string) bool {
		word := strings.TrimLeft(arg, "-")
		return word == "h" || strings.HasPrefix(word, "help")
	})
	named := slices.DeleteFunc(commands(), func(c namedCommand) bool { return !slices.Contains(args, c.name) })
	if help || len(named) == 0 {
		return t.app()
	}
	return t.appOf(named)
}

// appOf is the program with some of the commands.
func (t *tool) appOf(list []namedCommand) *cli.App {
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
	}
	for _, command := range list {
		c := command.build(t)
		app.Commands = append(app.Commands, c)
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
	return usagef("unknown command %q%s; see mcompress --help", name, didYouMean(name, commandNames()))
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
