package main

import (
	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/quantize"
)

func quantizeCommand(t *tool) *cli.Command {
	return methodCommand{
		command:  "quantize",
		usage:    "quantize weights and activations",
		choose:   "method",
		method:   "dynamic-int8",
		prepare:  &preparing{},
		other:    quantize.WeightInt8{},
		auto:     &searchFlags{},
		variants: &variantFlag{},
	}.build(t)
}
