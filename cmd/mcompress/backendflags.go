package main

import (
	"flag"
	"strings"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
)

// backendFlags are the flags of the backend that runs models.
type backendFlags struct {
	backend mcli.Enum
	library string
	cache   string
}

// newBackendFlags returns the flags, with more values of --backend in addition to the two backends.
func newBackendFlags(more ...string) *backendFlags {
	return &backendFlags{backend: mcli.Enum{Value: mcompress.BackendEmbedded, Words: append([]string{mcompress.BackendEmbedded, mcompress.BackendORT}, more...)}}
}

func (r *backendFlags) declare(fs *flag.FlagSet) {
	fs.Var(&r.backend, "backend", "`backend` that runs the models: "+strings.Join(append([]string{"embedded", "ort for ONNX Runtime"}, r.backend.Words[2:]...), ", or "))
	fs.StringVar(&r.library, "ort-lib", "", "`path` of the library of ONNX Runtime, or of its folder (default: "+mcompress.LibraryVariable+", then the library folders of the system)")
	fs.StringVar(&r.cache, "cache", "", "`folder` that keeps packed weights for later runs of the embedded backend, which map them into memory and share it")
}

func (r *backendFlags) embedded() bool { return r.backend.Value == mcompress.BackendEmbedded }
