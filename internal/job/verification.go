package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// A Verification describes how a model is compared with its source or with recorded outputs.
type Verification struct {
	Data      Data
	Backend   Backend
	Scores    string // the output with classes or scores; empty for the first suitable one
	Layers    bool   // also compare values inside the graphs
	Latency   bool   // also measure the time of a run of each model
	Digest    bool   // of the data; random inputs are identified by their seed
	Force     bool   // verify models of any size
	Required  bool   // models that cannot be run are an error
	Tolerance verify.Tolerance
	Metric    metric.Measure // besides accuracy; nil for none

	teacher bool // the first model is the teacher of the second one: inputs and outputs may have other names
}

// Demand sets what follows from the request, for the program and the library: always verifies models of any size,
// and makes models that cannot be run an error; data and gates that need a run verify models of any size; gates on
// time measure it.
func (v *Verification) Demand(always bool, gates []report.Limit) {
	has := func(kinds ...report.GateKind) bool {
		return slices.ContainsFunc(gates, func(g report.Limit) bool { return slices.Contains(kinds, report.KindOf(g.Name)) })
	}
	v.Required = always
	v.Force = always || !v.Data.Generated() || has(report.OnOutputs, report.OnTime)
	v.Latency = has(report.OnTime)
}

// Without --verify, a compressed model is verified if its weights have at most this many bytes, in runs of at most
// this many steps; layers are compared, which takes additional runs, if all computed values have at most
// maxDefaultLayers.
const (
	maxDefaultWeights = 512 << 20
	maxDefaultLayers  = 64 << 20
	maxDefaultSteps   = memory.DefaultSteps / 4
)

// Verify compares b with a on the same samples, or a alone with recorded outputs if b is empty.
func Verify(ctx context.Context, a, b string, v Verification) (*verification.Result, error) {
	first, err := remote.OpenModel(ctx, a)
	if err != nil {
		return nil, withPath(a, err)
	}
	defer first.Close()
	if b == "" {
		r, err := v.compareRecorded(ctx, first)
		return r, cmp.Or(unchanged(first), withModelPath(a, b, err))
	}
	second, err := remote.OpenModel(ctx, b)
	if err != nil {
		return nil, withPath(b, err)
	}
	defer second.Close()
	return v.Compare(ctx, first, second)
}

// Compare compares b with a on the same samples, for models of any size.
func (v Verification) Compare(ctx context.Context, a, b *onnx.File) (*verification.Result, error) {
	v.Force, v.Required = true, true
	r, err := v.compare(ctx, a, b)
	return r, cmp.Or(unchanged(a, b), withModelPath(a.Path, b.Path, err))
}

// unchanged returns a *onnx.ChangedError if one of the models, of which some are nil, was written since it was opened: that
// is the cause of whatever else went wrong.
func unchanged(models ...*onnx.File) error {
	var errs []error
	for _, f := range models {
		if f != nil {
			errs = append(errs, f.CheckUnchanged())
		}
	}
	return errors.Join(errs...)
}

// withModelPath prefixes an error with the path of the model that caused it.
func withModelPath(a, b string, err error) error {
	var side *verify.SideError
	switch {
	case !errors.As(err, &side):
		return err
	case side.Side == verify.First:
		return withPath(a, err)
	// Such an error is neither a bug nor a fault of the source, which callers tell by its type.
	case isValuesError(err):
		return &ValuesError{withPath(b, err)}
	}
	return withPath(b, err)
}

// unrunnableError is the error of a source that cannot be run, or not on random inputs. It skips verification and
// is not an error of the compressed model.
type unrunnableError struct{ err error }

func (e *unrunnableError) Error() string { return e.err.Error() }
func (e *unrunnableError) Unwrap() error { return e.err }

// withChosenSizes adds the chosen sizes of axes to an error of the source, which the other model has in common with it.
func withChosenSizes(set *dataset.Set, err error) error {
	var side *verify.SideError
	if errors.As(err, &side) && side.Side == verify.First {
		return &verify.SideError{Side: side.Side, Err: set.Explain(side.Err)}
	}
	return err
}

// inputError marks errors of generating random inputs as unrunnable, except for mistakes in options.
func (v Verification) inputError(err error) error {
	var option *pass.OptionError
	if errors.As(err, &option) {
		return err
	}
	if err != nil && v.Data.Generated() {
		return &verify.SideError{Side: verify.First, Err: &unrunnableError{err}}
	}
	return err
}

// sourceError marks errors of running the source as unrunnable if random inputs or a bug of the engine may have
// caused them.
func (v Verification) sourceError(ctx context.Context, err error) error {
	var side *verify.SideError
	var bug *ir.Bug
	var known *unrunnableError
	switch {
	case !errors.As(err, &side) || side.Side != verify.First || ctx.Err() != nil || errors.As(err, &known):
		return err
	case errors.As(err, &bug):
		return &verify.SideError{Side: verify.First, Err: &unrunnableError{side.Err}}
	case v.Data.Generated():
		return &verify.SideError{Side: verify.First,
			Err: &unrunnableError{fmt.Errorf("it does not run on random inputs; use --data: %w", side.Err)}}
	}
	return err
}

// compare runs both models. If it was requested it raises a default memory limit as far as the machine allows, and
// the result has a note.
func (v Verification) compare(ctx context.Context, a, b *onnx.File) (*verification.Result, error) {
	limits := &v.Backend.Limits
	if !v.Force {
		limits.Steps = min(cmp.Or(limits.Steps, maxDefaultSteps), maxDefaultSteps)
	}
	given := limits.Memory
	r, err := v.compareWithin(ctx, a, b)
	for v.Force && raise(limits, err) {
		r, err = v.compareWithin(ctx, a, b)
	}
	if err == nil && limits.Memory != given {
		r.Notes = append(r.Notes, fmt.Sprintf("the memory limit of each model was raised from %s to %s", size(given),
			size(limits.Memory)))
	}
	return r, err
}

// raise raises a default memory limit after a run that needs more, and reports whether the machine has enough.
func raise(l *memory.Limits, err error) bool {
	var more *engine.MemoryError
	if !errors.As(err, &more) || l.Memory == 0 || l.Fixed {
		return false
	}
	need := more.Need + min(more.Held, math.MaxInt64-more.Need)
	most := memory.DefaultLimit()
	if need > most || l.Memory >= most {
		return false
	}
	l.Memory = min(most, max(need+need/4, 2*l.Memory))
	return true
}

func size(n int64) string { return humanize.IBytes(uint64(n)) }

// compareWithin runs both models within the limits.
func (v Verification) compareWithin(ctx context.Context, a, b *onnx.File) (*verification.Result, error) {
	if err := v.checkSteps(a.Model); err != nil {
		return nil, err
	}
	c, err := v.cost(ctx, a, b)
	if err == nil {
		err = v.checkLimits(c)
	}
	if err != nil {
		return nil, err
	}
	if !v.Force && c.computed > maxDefaultLayers {
		v.Layers = false
	}
	// Equal names inside a teacher and its student are those of other layers.
	v.Layers = v.Layers && !v.teacher
	set, err := v.data().Open(v.sampleModel(a, b), v.samples(c))
	if err != nil {
		return nil, v.inputError(err)
	}
	defer set.Close()
	r, err := v.compareSessions(ctx, a, b, set)
	if err != nil {
		return nil, v.sourceError(ctx, withChosenSizes(set, err))
	}
	if v.Latency {
		if r.Latency, err = v.latency(ctx, a, b, set); err != nil {
			return nil, v.sourceError(ctx, withChosenSizes(set, err))
		}
	}
	if c.known {
		r.Activations = &verification.Activations{Before: c.before, After: c.after}
	}
	return v.annotate(ctx, r)
}

// compareSessions compares both models: their outputs, and then what is inside of them in sessions of their own, as
// those that retain values do not fuse operators. Whether layers are compared thus moves no figure of outputs.
func (v Verification) compareSessions(ctx context.Context, a, b *onnx.File,
	set *dataset.Set) (r *verification.Result, err error) {
	err = v.withSessions(ctx, a, b, nil, func(first, second engine.Session) error {
		o := verify.Options{Batch: v.Data.Batch, Scores: v.Scores, Metric: v.Metric}
		if r, err = verify.Compare(ctx, v.firstSession(first, second), second, set, o); err == nil {
			r.Weights = weightsOf(first, second)
		}
		return err
	})
	if err != nil || !v.Layers {
		return r, err
	}
	layers, err := verify.CommonValues(ctx, a.Model, b.Model)
	if err != nil {
		return nil, err
	}
	err = v.withSessions(ctx, a, b, layers.Names, func(first, second engine.Session) error {
		return layers.Compare(ctx, first, second, set, v.Data.Batch, r)
	})
	if err != nil && ctx.Err() == nil { // such as values that need more memory than outputs do
		r.Notes = append(r.Notes, "layers were not compared: "+err.Error())
		return r, nil
	}
	return r, err
}

// withSessions opens both models, with the values that they keep, for run.
func (v Verification) withSessions(ctx context.Context, a, b *onnx.File, keep []string,
	run func(first, second engine.Session) error) error {
	first, done, err := v.Backend.Open(ctx, a, keep)
	if err != nil {
		return &verify.SideError{Side: verify.First, Err: &unrunnableError{err}}
	}
	defer done()
	second, done, err := v.Backend.Open(ctx, b, keep)
	if err != nil {
		return &verify.SideError{Side: verify.Second, Err: err}
	}
	defer done()
	return run(first, second)
}

// weightsOf are the bytes of weights that two sessions of the engine hold; nil for other sessions, and if weights are
// streamed.
func weightsOf(sessions ...engine.Session) *verification.Weights {
	var bytes []int64
	for _, s := range sessions {
		e, embedded := s.(interface{ Weights() (held, streamed int64) })
		if !embedded {
			return nil
		}
		held, streamed := e.Weights()
		// Streamed weights are in memory in turns: what is held is no size of the model.
		if streamed > 0 {
			return nil
		}
		bytes = append(bytes, held)
	}
	return &verification.Weights{Before: bytes[0], After: bytes[1]}
}

// sampleModel is the model that samples are read for.
func (v Verification) sampleModel(a, b *onnx.File) *ir.Model {
	if v.teacher && !hasInputs(a.Model.Graph, b.Model.Graph) {
		return b.Model
	}
	return a.Model
}

// hasInputs reports whether g has all inputs of other. A teacher with more layers than its student has more caches.
func hasInputs(g, other *ir.Graph) bool {
	return !slices.ContainsFunc(other.Inputs, func(v *ir.Value) bool {
		return !slices.ContainsFunc(g.Inputs, func(w *ir.Value) bool { return w.Name == v.Name })
	})
}

// firstSession returns the first session, with the names of the second one if it is its teacher.
func (v Verification) firstSession(first, second engine.Session) engine.Session {
	if v.teacher {
		return verify.WithNamesOf(first, second)
	}
	return first
}

// latency times both models, in sessions of their own.
func (v Verification) latency(ctx context.Context, a, b *onnx.File,
	set *dataset.Set) (l *verification.Latency, err error) {
	return l, v.withSessions(ctx, a, b, nil, func(first, second engine.Session) error {
		l, err = verify.Latency(ctx, v.firstSession(first, second), second, set, verify.Options{Batch: v.Data.Batch})
		return err
	})
}

// compareRecorded runs a alone.
func (v Verification) compareRecorded(ctx context.Context, a *onnx.File) (*verification.Result, error) {
	if v.Data.Generated() {
		return nil, pass.OptionErrorf("one model is compared with recorded outputs or labels: name them with --data, or " +
			"name a second model")
	}
	set, err := v.data().Open(a.Model, 0)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	s, done, err := v.Backend.Open(ctx, a, nil)
	if err != nil {
		return nil, &verify.SideError{Side: verify.First, Err: err}
	}
	defer done()
	r, err := verify.Recorded(ctx, s, set, v.Tolerance, verify.Options{Batch: v.Data.Batch, Scores: v.Scores,
		Metric: v.Metric})
	if err != nil {
		return nil, err
	}
	return v.annotate(ctx, r)
}

// annotate adds the backend and the origin of the inputs.
func (v Verification) annotate(ctx context.Context, r *verification.Result) (*verification.Result, error) {
	r.Backend = v.Backend.String()
	if v.Data.Generated() {
		r.Data.Generated, r.Data.Seed = true, v.Data.Seed
		return r, nil
	}
	var err error
	if r.Data.Name, r.Data.SHA256, err = v.identity(ctx, v.Data.Path); err != nil {
		return nil, err
	}
	if labels := v.Data.Options.Labels; isFile(labels) {
		r.Data.Labels = &verification.File{}
		r.Data.Labels.Name, r.Data.Labels.SHA256, err = v.identity(ctx, labels)
	}
	return r, err
}

// identity is the name of a file or folder, and the digest of its content unless digests are off.
func (v Verification) identity(ctx context.Context, path string) (name, sum string, err error) {
	if v.Digest {
		sum, err = inputDigest(ctx, path)
	}
	return remote.Base(path), sum, err
}

func isFile(path string) bool {
	if remote.Is(path) {
		return true
	}
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// checkSteps returns an error if m has more nodes and initializers than a run has steps: preparing a run of so many
// would take longer than compression.
func (v Verification) checkSteps(m *ir.Model) error {
	if v.Force || !v.Backend.Embedded() {
		return nil
	}
	n := int64(len(m.Graph.Consts()) + m.Graph.NodeCount())
	if n <= v.Backend.Limits.Steps {
		return nil
	}
	return &verify.SideError{Side: verify.First,
		Err: &unrunnableError{
			fmt.Errorf("it has %s nodes and initializers; without --verify a run is limited to %s steps",
				humanize.Comma(n), humanize.Comma(v.Backend.Limits.Steps))}}
}

// checkLimits returns an error if the models are too large to be run.
func (v Verification) checkLimits(c cost) error {
	switch {
	case !v.Force && c.weights > maxDefaultWeights:
		return &verify.SideError{Side: verify.First,
			Err: &unrunnableError{
				fmt.Errorf("it has %s of weights; models with more than %s are verified only with --verify",
					size(c.weights), size(maxDefaultWeights))}}
	case !v.Force && v.Backend.Limits.Memory > 0 && c.arena > v.Backend.Limits.Memory:
		hint := "--verify raises it"
		if v.Backend.Limits.Fixed {
			hint = "it is half of the memory limit"
		}
		return &verify.SideError{Side: verify.First,
			Err: &unrunnableError{
				fmt.Errorf("a run needs %s in addition to the weights, the limit for one model is %s: %s",
					size(c.arena), size(v.Backend.Limits.Memory), hint)}}
	}
	return nil
}

// The default number of random samples is limited by their cost: bytes of weights read and, weighted by valueCost,
// of values computed.
const (
	maxSamples = 8
	runBytes   = 64 << 20
	valueCost  = 8 // cost of computing a byte of values relative to reading one of weights
)

func (v Verification) samples(c cost) int {
	if v.Data.Samples > 0 {
		return v.Data.Samples
	}
	if !c.known {
		return 1
	}
	return int(min(maxSamples, max(1, runBytes/max(1, c.weights+valueCost*c.computed))))
}

// weightBytes returns the size of the constants of m's graphs.
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
