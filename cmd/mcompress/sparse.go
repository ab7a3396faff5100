package main

import (
	"flag"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
)

func sparseCommand(t *tool) *cli.Command {
	return methodCommand{
		command: "sparse",
		usage:   "store weights with many zeros in sparse formats, bit-identically",
		choose:  "format",
		method:  "auto",
		more: func(fs *flag.FlagSet, chosen *mcli.Enum, w *requestFlags) {
			fs.BoolFunc("dense", "undo sparse forms: short for --format dense", func(string) error {
				return chosen.Set("dense")
			})
			outPathVar(fs, &w.ExportDir, "export", "`folder` for the sparse weights as .npz files that scipy reads")
		},
	}.build(t)
}
