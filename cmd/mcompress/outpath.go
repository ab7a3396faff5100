package main

import (
	"errors"
	"flag"

	mcli "github.com/mcompress/mcompress/internal/cli"
)

// An outPath is the path of a file or folder to write. A result is one file or several, written atomically, which standard output
// cannot be.
type outPath struct{ path *string }

func outPathVar(fs *flag.FlagSet, to *string, name, usage string) { fs.Var(outPath{to}, name, usage) }

// String is the path; empty for one that is not given.
func (o outPath) String() string {
	if o.path == nil {
		return ""
	}
	return *o.path
}

// Set refuses "-".
func (o outPath) Set(path string) error {
	if path == "-" {
		return errors.New("writing to standard output is not supported; name a file or folder")
	}
	if mcli.IsAddress(path) {
		return errors.New("writing to a URL is not supported; name a file or folder on disk")
	}
	*o.path = path
	return nil
}

// A resultPath is an outPath that may also be a URL of a bucket.
type resultPath struct{ outPath }

// Set refuses "-" and URLs that are read-only.
func (r resultPath) Set(path string) error {
	if !mcli.IsAddress(path) {
		return r.outPath.Set(path)
	}
	if err := mcli.CheckOutput(path); err != nil {
		return err
	}
	*r.path = path
	return nil
}
