package main

import "github.com/urfave/cli/v2"

func pruneCommand(t *tool) *cli.Command {
	return methodCommand{
		command: "prune",
		usage:   "prune weights, channels and layers; low-rank factorization",
		choose:  "method",
		method:  "l1",
	}.build(t)
}
