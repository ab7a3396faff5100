package main

import (
	"flag"

	"github.com/mcompress/mcompress/engine/ort"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/job"
)

// running is the flags that say what runs models.
type running struct {
	backend mcli.Enum
	library string
}

func newRunning() *running {
	return &running{backend: mcli.Enum{Value: "embedded", Words: []string{"embedded", "ort"}}}
}

func (r *running) declare(fs *flag.FlagSet) {
	fs.Var(&r.backend, "backend", "`what` runs models: embedded, or ort for ONNX Runtime")
	fs.StringVar(&r.library, "ort-lib", "", "`path` of ONNX Runtime's library, or of its folder (default: "+ort.Variable+", then where libraries are)")
}

// sessionShare is the part of the memory limit that one of two models may take.
const sessionShare = 2

// of is what the flags say.
func (r *running) of(t *tool) (job.Backend, error) {
	b := job.Backend{Workers: t.workers, Memory: max(1, int64(t.memory)/sessionShare)}
	if r.backend.Value == "embedded" {
		if r.library != "" {
			return b, usagef("--ort-lib goes with --backend ort")
		}
		return b, nil
	}
	path, err := ort.Find(r.library)
	if err != nil {
		return b, err
	}
	b.Library, err = ort.Load(path)
	return b, err
}
