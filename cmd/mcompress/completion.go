package main

import (
	_ "embed"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
)

// completeCommand is the command that the completion scripts call, with the words of the line.
const completeCommand = "__complete"

//go:embed completion.bash
var bashCompletion string

//go:embed completion.zsh
var zshCompletion string

//go:embed completion.fish
var fishCompletion string

// scripts are the completion scripts by shell.
var scripts = map[string]*string{"bash": &bashCompletion, "zsh": &zshCompletion, "fish": &fishCompletion}

var shells = []string{"bash", "zsh", "fish"}

func completionCommand(t *tool) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes commands in a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: `bash: add to ~/.bashrc    source <(mcompress completion bash)
zsh:  add to ~/.zshrc     source <(mcompress completion zsh)
fish: run once            mcompress completion fish > ~/.config/fish/completions/mcompress.fish`,
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			script := scripts[args[0]]
			if script == nil {
				return usagef("unknown shell %q; there are %s", args[0], mcli.And(shells))
			}
			_, err = io.WriteString(t.stdout, *script)
			return err
		},
	}
}

// complete prints the candidates for the last word, one per line.
func complete(w io.Writer, app *cli.App, words []string) error {
	sets := map[string]*flag.FlagSet{"": flagSet(app.Flags), "help": flagSet(app.Flags)}
	for _, c := range app.Commands {
		sets[c.Name] = flagSet(app.Flags, c.Flags)
	}
	for _, word := range mcli.Complete(sets, map[string][]string{"completion": shells, "help": commandNames()}, words) {
		if _, err := fmt.Fprintln(w, word); err != nil {
			return err
		}
	}
	return nil
}

func commandNames() []string {
	var ns []string
	for _, c := range commands() {
		ns = append(ns, c.name)
	}
	return slices.Sorted(slices.Values(ns))
}
