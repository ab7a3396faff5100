package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/atomicfile"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/pack"
)

func unpackCommand(t *tool) *cli.Command {
	var output string
	var noSync bool
	return &cli.Command{
		Name:      "unpack",
		Usage:     "restore the model of a packed file (.mcz) bit for bit",
		ArgsUsage: "PACKED",
		Description: `PACKED is a file of pack, or - for standard input. Every chunk and the SHA-256 of every file are verified before a file appears.
Files of external data have the names that the model refers to, in the folder of the model.`,
		Flags: group("flags", func(fs *flag.FlagSet) {
			outPathVar(fs, &output, "output", "`file` for the model")
			fs.BoolVar(&noSync, "no-sync", false, "skip fsync")
		}),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			if output == "" {
				return usagef("--output is required")
			}
			return t.unpack(c.Context, args[0], output, !noSync)
		},
	}
}

// unpack restores the model at path, or on standard input, and prints its files.
func (t *tool) unpack(ctx context.Context, path, output string, sync bool) (err error) {
	set := &atomicfile.Set{Sync: sync}
	defer func() { err = errors.Join(err, set.Close()) }()
	in, name := io.Reader(os.Stdin), "standard input"
	if path != "-" {
		if set.Access, err = atomicfile.Like(path); err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, path
	}
	o, stop := t.packOptions(name)
	defer stop()
	u := &mcli.Unpacking{Packed: name}
	index, err := pack.Read(ctx, in, name, func(f pack.FileInfo) (pack.Output, error) {
		to := output
		if len(u.Files) > 0 {
			to = filepath.Join(filepath.Dir(output), filepath.FromSlash(f.Name))
		}
		if err := set.MakeDir(filepath.Dir(to)); err != nil {
			return nil, err
		}
		u.Files = append(u.Files, mcli.UnpackedFile{Path: to, Bytes: f.Size})
		return set.Create(to)
	}, o)
	if err == nil {
		err = set.Publish(output)
	}
	if err != nil {
		return err
	}
	for i := range u.Files {
		u.Files[i].SHA256 = index.Files[i].SHA256
	}
	if t.json {
		return t.encode(u)
	}
	return u.Text(t.stdout, t.style())
}
