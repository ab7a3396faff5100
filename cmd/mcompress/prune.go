package main

import "github.com/urfave/cli/v2"

func (t *tool) pruneCommand() *cli.Command {
	return methodCommand{
		command: "prune",
		usage:   "set weights to zero",
		choose:  "method",
		method:  "l1",
	}.build(t)
}
