package job

import (
	"cmp"
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report/verification"
)

// sessionSamples is the number of random samples of a comparison with a session.
const sessionSamples = 8

// CompareSession compares b, the stages or shards of a, with a on the same samples, in up to the given number of
// concurrent runs of b. The engine runs a without fusions, whose results depend on what is in one file.
func (v Verification) CompareSession(ctx context.Context, a *onnx.File, b engine.Session,
	parallel int) (_ *verification.Result, err error) {
	set, err := v.data().Open(a.Model, cmp.Or(v.Data.Samples, sessionSamples))
	if err != nil {
		return nil, withPath(a.Path, err)
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	whole, err := v.Backend.Cache.Open(ctx, a, engine.Options{Workers: v.Backend.Workers, Limits: v.Backend.Limits,
		NoFusion: true})
	if err != nil {
		return nil, withPath(a.Path, err)
	}
	defer func() { err = errors.Join(err, whole.Close()) }()
	r, err := verify.Compare(ctx, whole, b, set, verify.Options{Batch: v.Data.Batch, Parallel: parallel})
	var side *verify.SideError
	switch {
	case errors.As(err, &side) && side.Side == verify.Second:
		return nil, side.Err // it names the file
	case err != nil:
		return nil, withModelPath(a.Path, a.Path, withChosenSizes(set, err))
	}
	return v.annotate(ctx, r)
}
