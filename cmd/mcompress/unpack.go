package main

import (
	"flag"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
)

func unpackCommand(t *tool) *cli.Command {
	var p packing
	var overwrite bool
	return &cli.Command{
		Name:      "unpack",
		Usage:     "restore the model of a packed file (.mcz) bit for bit",
		ArgsUsage: "PACKED",
		Description: `PACKED is a file of pack, or - for standard input. Every chunk and the SHA-256 of every file are verified before a file appears.
Files of external data have the names that the model refers to, in the folder of the model; one that exists with other content is kept unless
--overwrite is given. A file that was packed with --base is unpacked with the same model as --base; its SHA-256 is verified.`,
		Flags: p.flags(func(fs *flag.FlagSet) {
			outPathVar(fs, &p.output, "output", "`file` for the model")
			fs.BoolVar(&overwrite, "overwrite", false, "replace files of external data that exist with other content")
		}, "`model` that the packed file was packed with"),
		Action: func(c *cli.Context) error {
			path, err := p.arguments(c)
			if err != nil {
				return err
			}
			in, name := io.Reader(nil), path
			if path == "-" {
				in, name = os.Stdin, "standard input"
			}
			u, err := mcompress.Unpack(c.Context, name, in, p.output, mcompress.UnpackOptions{
				PackOptions: p.options(t, c.Command.Name), Overwrite: overwrite,
			})
			if err != nil {
				return err
			}
			if t.json {
				return mcli.UnpackedJSON(t.stdout, u)
			}
			return mcli.Unpacked(t.stdout, t.style(), u)
		},
	}
}
