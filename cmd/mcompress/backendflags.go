package main

import (
	"flag"
	"strings"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/latency"
)

// running is the flags that say what runs models.
type running struct {
	backend mcli.Enum
	library string
}

// newRunning takes what --backend knows beside the two backends.
func newRunning(more ...string) *running {
	return &running{backend: mcli.Enum{Value: latency.Embedded, Words: append([]string{latency.Embedded, latency.ORT}, more...)}}
}

func (r *running) declare(fs *flag.FlagSet) {
	fs.Var(&r.backend, "backend", "`backend` that runs the models: "+strings.Join(append([]string{"embedded", "ort for ONNX Runtime"}, r.backend.Words[2:]...), ", or "))
	fs.StringVar(&r.library, "ort-lib", "", "`path` of the library of ONNX Runtime, or of its folder (default: "+ort.Variable+", then the library folders of the system)")
}

func (r *running) embedded() bool { return r.backend.Value == latency.Embedded }

// check refuses a library that nothing would use.
func (r *running) check() error {
	if r.library != "" && r.embedded() {
		return usagef("--ort-lib requires --backend %s", strings.Join(r.backend.Words[1:], " or "))
	}
	return nil
}

// sessionShare is the part of the memory limit that one of two models may take.
const sessionShare = 2

// of is what the flags say.
func (r *running) of(t *tool) (job.Backend, error) {
	b := job.Backend{Workers: t.workers, Memory: max(1, int64(t.memory)/sessionShare)}
	if err := r.check(); err != nil || r.embedded() {
		return b, err
	}
	path, err := ort.Find(r.library)
	if err != nil {
		return b, &libraryError{err}
	}
	if b.Library, err = ort.Load(path); err != nil {
		return b, &libraryError{err}
	}
	return b, nil
}
