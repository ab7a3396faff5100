package mcompress

import (
	"context"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/pipeline"
)

// NewSplitSession opens the pipeline stages or tensor-parallel shards of a model by their manifest, NAME.stages.json or
// NAME.shards.json of mcompress split, as one session in this process. Files whose sizes or digests differ from the
// manifest's are errors, for which they are read once. It uses the limits, those of memory and steps for each file.
// Each stage runs one batch at a time and the ranks of a segment run concurrently, so that n concurrent calls of Run
// keep n stages busy. Processes for the stages are what the command mcompress split --run starts.
func NewSplitSession(ctx context.Context, manifest string, o SessionOptions) (*Session, error) {
	p, err := pipeline.Open(ctx, manifest, pipeline.Options{Workers: o.Limits.threads(),
		Limits: memory.Limits{Memory: o.Limits.Memory, Steps: o.Limits.Steps}, Digests: true})
	if err != nil {
		return nil, err
	}
	return &Session{session: p}, nil
}
