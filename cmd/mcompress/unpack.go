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
	var p packing
	return &cli.Command{
		Name:      "unpack",
		Usage:     "restore the model of a packed file (.mcz) bit for bit",
		ArgsUsage: "PACKED",
		Description: `PACKED is a file of pack, or - for standard input. Every chunk and the SHA-256 of every file are verified before a file appears.
Files of external data have the names that the model refers to, in the folder of the model. A file that was packed with --base is unpacked with the same model as --base; its SHA-256 is verified.`,
		Flags: p.flags(func(fs *flag.FlagSet) {
			outPathVar(fs, &p.output, "output", "`file` for the model")
		}, "`model` that the packed file was packed with"),
		Action: func(c *cli.Context) error {
			path, err := p.arguments(c)
			if err != nil {
				return err
			}
			return p.openBase(c.Context, func(base []pack.File) error { return t.unpack(c.Context, path, p.output, base, !p.noSync) })
		},
	}
}

// unpack restores the model at path, or on standard input, and prints its files.
func (t *tool) unpack(ctx context.Context, path, output string, base []pack.File, sync bool) (err error) {
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
	o.Base = base
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
