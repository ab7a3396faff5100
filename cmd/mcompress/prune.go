package main

import "github.com/urfave/cli/v2"

func (t *tool) pruneCommand() *cli.Command {
	return methodCommand{
		command: "prune",
		usage:   "set weights to zero, remove channels and blocks, lower ranks",
		choose:  "method",
		method:  "l1",
	}.build(t)
}
