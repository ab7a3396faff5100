package main

import (
	"flag"
	"fmt"
	"strings"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/latency"
)

// backendFlags are the flags of the backend that runs models.
type backendFlags struct {
	backend mcli.Enum
	library string
	cache   string
}

// newBackendFlags returns the flags, with more values of --backend in addition to the two backends.
func newBackendFlags(more ...string) *backendFlags {
	return &backendFlags{backend: mcli.Enum{Value: latency.Embedded, Words: append([]string{latency.Embedded, latency.ORT}, more...)}}
}

func (r *backendFlags) declare(fs *flag.FlagSet) {
	fs.Var(&r.backend, "backend", "`backend` that runs the models: "+strings.Join(append([]string{"embedded", "ort for ONNX Runtime"}, r.backend.Words[2:]...), ", or "))
	fs.StringVar(&r.library, "ort-lib", "", "`path` of the library of ONNX Runtime, or of its folder (default: "+ort.Variable+", then the library folders of the system)")
	fs.StringVar(&r.cache, "cache", "", "`folder` that keeps packed weights for later runs of the embedded backend, which map them into memory and share it")
}

func (r *backendFlags) embedded() bool { return r.backend.Value == latency.Embedded }

// check rejects --ort-lib if ONNX Runtime is not used, and --cache if only that is.
func (r *backendFlags) check() error {
	if r.library != "" && r.embedded() {
		return usagef("--ort-lib requires --backend %s", strings.Join(r.backend.Words[1:], " or "))
	}
	if r.cache != "" && r.backend.Value == latency.ORT {
		return usagef("--cache requires --backend %s", latency.Embedded)
	}
	return nil
}

// warnOfCache prints an error of the weight cache, which is no error of the run.
func (t *tool) warnOfCache(err error) {
	if !t.quiet {
		printError(t.stderr, fmt.Errorf("warning: %w", err))
	}
}
