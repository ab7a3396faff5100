package main

import "github.com/urfave/cli/v2"

func quantizeCommand(t *tool) *cli.Command {
	return methodCommand{
		command: "quantize",
		usage:   "quantize weights and activations",
		choose:  "method",
		method:  "dynamic-int8",
		prepare: &preparing{},
		auto:    &automatic{},
	}.build(t)
}
