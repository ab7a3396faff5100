package main

import (
	"errors"
	"flag"
	"path/filepath"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/registry"
)

const overwritesTag = "replace a tag, alias or file that exists with other content"

// registryFlags are the flags of connections to registries.
type registryFlags struct{ mcompress.Registry }

func (r *registryFlags) declare(fs *flag.FlagSet, overwrites string) {
	declareRegistry(fs, &r.Registry, overwrites)
}

// declareRegistry declares the flags of writing to a registry.
func declareRegistry(fs *flag.FlagSet, r *mcompress.Registry, overwrites string) {
	declareConnection(fs, r)
	fs.BoolVar(&r.Overwrite, "overwrite", false, overwrites)
}

func declareConnection(fs *flag.FlagSet, r *mcompress.Registry) {
	fs.BoolVar(&r.PlainHTTP, "plain-http", false, "connect to the registry without TLS; loopback addresses only")
	fs.BoolVar(&r.Insecure, "insecure", false, "do not verify the TLS certificate of the registry; prints a warning")
}

// connection returns the options of requests without a progress bar.
func (r *registryFlags) connection() registry.Options {
	return registry.Options{PlainHTTP: r.PlainHTTP, Insecure: r.Insecure, Overwrite: r.Overwrite}
}

// options returns the options of a transfer, with a warning if it is insecure. stop ends the progress bar.
func (r *registryFlags) options(t *tool, command string, ref registry.Reference) (o registry.Options, stop func()) {
	o = r.connection()
	if text := o.Warning(ref); text != "" {
		t.printWarning(command, errors.New(text))
	}
	p := t.newProgress(ref.Name)
	if p != nil {
		o.Progress = p.show
	}
	return o, p.stop
}

// parseReference parses an argument.
func parseReference(text string) (registry.Reference, error) {
	ref, err := registry.Parse(text)
	if err != nil {
		return ref, &usageError{err}
	}
	return ref, nil
}

// pullDir is the folder of a pull: by default named after the model.
func pullDir(ref registry.Reference, output string) (string, error) {
	if output != "" {
		return output, nil
	}
	if ref.Host == "" {
		return "", errors.New("--output with the path of a folder is required")
	}
	return filepath.Base(filepath.FromSlash(ref.Name)), nil
}
