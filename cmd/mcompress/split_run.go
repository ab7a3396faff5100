package main

import (
	"context"
	"errors"
	"io"
	"os"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/pipeline"
	"github.com/mcompress/mcompress/onnx"
)

// The values of --run.
const (
	runSequential = "sequential"
	runPiped      = "piped"
)

// stageCommand is the command that runs a stage or rank in a process of its own: see pipeline.Serve.
const stageCommand = "__stage"

// serveStage runs the files of a device for the parent process, which ends it: signals to the process group are for the parent.
func serveStage(ctx context.Context, in io.Reader, out io.Writer) error {
	return pipeline.Serve(context.WithoutCancel(ctx), in, out)
}

// runStages runs the files of a manifest, each stage or rank in a process of its own, and compares them with the whole model.
func (s *splitFlags) runStages(ctx context.Context, t *tool, model, manifest string, data job.Data) (_ *mcli.SplitRun, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := pipeline.Open(ctx, manifest, pipeline.Options{
		Workers: t.workers, Limits: t.limits(), Exact: true,
		Start: func(ctx context.Context, set pipeline.Settings) (pipeline.Device, error) {
			return pipeline.Start(ctx, set, self, stageCommand)
		},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	f, err := onnx.OpenContext(ctx, model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	concurrent := 1
	if s.run.Value == runPiped {
		concurrent = len(p.Stats())
	}
	r := &mcli.SplitRun{Mode: s.run.Value}
	v := job.Verification{Data: data, Backend: job.Backend{Workers: t.workers, Limits: t.limits()}, Digest: true}
	r.Verification, err = v.CompareSession(ctx, f, p, concurrent)
	r.Stages = p.Stats()
	return r, err
}
