package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// A Verification says how a model is run beside its source, or alone.
type Verification struct {
	Data      Data
	Backend   Backend
	Scores    string // the output with classes or scores; empty for the first that can be one
	Layers    bool   // compare values inside the graphs, too
	Digest    bool   // of the data; made-up inputs follow from their seed
	Force     bool   // whatever the model's size
	Tolerance verify.Tolerance
}

// Unasked, a model is run after it was compressed if its weights are no more than this; layers are
// compared if all that a run makes is no more than mostLayers, as they take runs of their own.
const (
	mostUnasked = 512 << 20
	mostLayers  = 64 << 20
)

// Verify runs b against a on the same samples, or a alone against recorded outputs where b is
// empty. What the backend cannot run is no error: the result says that it was skipped, and why.
func Verify(ctx context.Context, a, b string, v Verification) (*verify.Result, error) {
	first, err := onnx.Open(a)
	if err != nil {
		return nil, located(a, err)
	}
	defer first.Close()
	if b == "" {
		r, err := v.recorded(ctx, first)
		return skip(r, placed(a, b, err))
	}
	second, err := onnx.Open(b)
	if err != nil {
		return nil, located(b, err)
	}
	defer second.Close()
	return v.Compare(ctx, first, second)
}

// Compare runs b against a on the same samples, whatever their size.
func (v Verification) Compare(ctx context.Context, a, b *onnx.File) (*verify.Result, error) {
	v.Force = true
	r, err := v.compare(ctx, a, b)
	return skip(r, placed(a.Path, b.Path, err))
}

// placed puts the path of the model that an error is about in front of it.
func placed(a, b string, err error) error {
	var side *verify.SideError
	switch {
	case !errors.As(err, &side):
		return err
	case side.Side == verify.First:
		return located(a, err)
	}
	return located(b, err)
}

// skip turns an operator that is missing into a result.
func skip(r *verify.Result, err error) (*verify.Result, error) {
	var missing *engine.Unsupported
	if errors.As(err, &missing) {
		return &verify.Result{Skipped: err.Error()}, nil
	}
	return r, err
}

// A refusal is the error of a source that cannot be run, or not on what was made up for it: that is
// nothing against the model that was made of it.
type refusal struct{ err error }

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }

// unopened marks errors of making inputs up.
func (v Verification) unopened(err error) error {
	if err != nil && v.Data.Generated() {
		return &verify.SideError{Side: verify.First, Err: &refusal{err}}
	}
	return err
}

// refused marks errors of running the source that may come from inputs being made up, or that do
// come from the engine.
func (v Verification) refused(ctx context.Context, err error) error {
	var side *verify.SideError
	var bug *engine.Bug
	var known *refusal
	switch {
	case !errors.As(err, &side) || side.Side != verify.First || ctx.Err() != nil || errors.As(err, &known):
		return err
	case errors.As(err, &bug):
		return &verify.SideError{Side: verify.First, Err: &refusal{side.Err}}
	case v.Data.Generated():
		return &verify.SideError{Side: verify.First, Err: &refusal{fmt.Errorf("it does not run on random inputs; use --data: %w", side.Err)}}
	}
	return err
}

// compare runs both models.
func (v Verification) compare(ctx context.Context, a, b *onnx.File) (*verify.Result, error) {
	c, err := v.cost(ctx, a, b)
	if err == nil {
		err = v.tooMuch(c)
	}
	if err != nil {
		return nil, err
	}
	if !v.Force && c.made > mostLayers {
		v.Layers = false
	}
	set, err := v.Data.Open(a.Model, v.samples(c))
	if err != nil {
		return nil, v.unopened(err)
	}
	defer set.Close()
	r, err := v.run(ctx, a, b, set)
	if err != nil {
		return nil, v.refused(ctx, err)
	}
	if c.known {
		r.Activations = &verify.Activations{Before: c.before, After: c.after}
	}
	return v.told(r), nil
}

// run opens both models and compares them.
func (v Verification) run(ctx context.Context, a, b *onnx.File, set *dataset.Set) (_ *verify.Result, err error) {
	o := verify.Options{Batch: v.Data.Batch, Scores: v.Scores, Digest: v.Digest && !v.Data.Generated()}
	var keep []string
	if v.Layers {
		if o.Layers, err = verify.CommonValues(ctx, a.Model, b.Model); err != nil {
			return nil, err
		}
		keep = o.Layers.Names
	}
	first, done, err := v.Backend.Open(ctx, a, keep)
	if err != nil {
		return nil, &verify.SideError{Side: verify.First, Err: &refusal{err}}
	}
	defer done()
	second, done, err := v.Backend.Open(ctx, b, keep)
	if err != nil {
		return nil, &verify.SideError{Side: verify.Second, Err: err}
	}
	defer done()
	return verify.Compare(ctx, first, second, set, o)
}

// recorded runs a alone.
func (v Verification) recorded(ctx context.Context, a *onnx.File) (*verify.Result, error) {
	if v.Data.Generated() {
		return nil, pass.OptionErrorf("one model is compared with recorded outputs or labels: name them with --data, or name a second model")
	}
	set, err := v.Data.Open(a.Model, 0)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	s, done, err := v.Backend.Open(ctx, a, nil)
	if err != nil {
		return nil, &verify.SideError{Side: verify.First, Err: err}
	}
	defer done()
	r, err := verify.Recorded(ctx, s, set, v.Tolerance, verify.Options{Batch: v.Data.Batch, Scores: v.Scores, Digest: v.Digest})
	if err != nil {
		return nil, err
	}
	return v.told(r), nil
}

// told adds what ran on what.
func (v Verification) told(r *verify.Result) *verify.Result {
	r.Backend = v.Backend.String()
	if v.Data.Generated() {
		r.Data.Generated, r.Data.Seed = true, v.Data.Seed
	}
	return r
}

// tooMuch is why models are not run, nil if they are.
func (v Verification) tooMuch(c cost) error {
	switch {
	case !v.Force && c.weights > mostUnasked:
		return &verify.SideError{Side: verify.First, Err: &refusal{fmt.Errorf("it has %s of weights, and more than %s are run with --verify only", humanize.IBytes(uint64(c.weights)), humanize.IBytes(mostUnasked))}}
	case v.Backend.Memory > 0 && c.arena > v.Backend.Memory:
		return &verify.SideError{Side: verify.First, Err: &refusal{fmt.Errorf("a run takes %s beside the weights, and %s are the share of --memory-limit for one model: raise it, or take smaller batches", humanize.IBytes(uint64(c.arena)), humanize.IBytes(uint64(v.Backend.Memory)))}}
	}
	return nil
}

// Of made-up samples there are as many as take in so many bytes of weights and make so many of values,
// but no more than 8: small models take no time, large ones need not run often to show that they do.
const (
	mostSamples = 8
	runBytes    = 64 << 20
	valueCost   = 8 // what computing a value takes, by what reading a weight does
)

func (v Verification) samples(c cost) int {
	if v.Data.Samples > 0 {
		return v.Data.Samples
	}
	if !c.known {
		return 1
	}
	return int(min(mostSamples, max(1, runBytes/max(1, c.weights+valueCost*c.made))))
}

// weightBytes is the size of the constants of m's graphs.
func weightBytes(m *ir.Model) int64 {
	seen := map[*ir.Tensor]bool{}
	bytes := int64(0)
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			if !seen[v.Const] {
				seen[v.Const] = true
				bytes += v.Const.Bytes()
			}
		}
	}
	return bytes
}
