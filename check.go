package mcompress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/fleet"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/latency"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/internal/redact"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/weightcache"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// defaultMemory is that of weights without a limit.
const defaultMemory = 256 << 20

// Defaults returns the request with the defaults of fields in place of their zero values, as far as they do not depend
// on the models.
func (r Request) Defaults() Request {
	if r.Label == "" && len(r.Steps) > 0 && checkStep(r.Steps[0]) == nil {
		r.Label = r.Steps[0].Method().Name
	}
	r.Label = cmp.Or(r.Label, "copy")
	r.Limits.Workers = cmp.Or(r.Limits.Workers, runtime.GOMAXPROCS(0))
	r.Limits.Steps = cmp.Or(r.Limits.Steps, memory.DefaultSteps)
	r.Verification.Backend = cmp.Or(r.Verification.Backend, latency.Embedded)
	return r
}

// Check reports the first field that is not valid, without opening a model: errors are *FieldError, or
// *pass.OptionError for options of steps. It is the first step of a run.
func (r Request) Check() error {
	for _, check := range []func() error{
		r.Limits.check, r.checkModels, r.checkNames, r.checkSteps, r.Search.check, r.checkSearch, r.Reports.check, r.List.check,
		r.checkVerification,
		r.checkGates, r.checkPush,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (l Limits) check() error {
	switch {
	case l.Workers < 0:
		return fieldErrorf("{Limits.Workers} %d: must be a positive number", l.Workers)
	case l.Memory < 0:
		return fieldErrorf("{Limits.Memory} %d: must be a positive number", l.Memory)
	case l.Steps < 0:
		return fieldErrorf("{Limits.Steps} %d: must be a positive number", l.Steps)
	}
	return nil
}

// recipes is the memory of lazy tensors in bytes: half of the limit, as the rest is for the graph, the report and
// garbage that is not collected yet.
func (l Limits) recipes() int64 { return max(1, cmp.Or(l.Memory, defaultMemory)/2) }

// weights is the memory of weights that are processed, in bytes.
func (l Limits) weights() int64 { return cmp.Or(l.Memory, defaultMemory) }

// run are the limits of a run of a model.
func (l Limits) run() memory.Limits {
	return memory.LimitsOf(cmp.Or(l.Memory, defaultMemory), l.Memory > 0, l.Steps)
}

func (r Request) checkModels() error {
	if len(r.Models) == 0 && r.source == nil && !r.List.KeepPaths { // a list may be empty
		return fieldErrorf("{Models} is empty")
	}
	return nil
}

// checkNames refuses names that would be stored and printed with a password, and outputs that are no files.
func (r Request) checkNames() error {
	for _, name := range slices.Concat(r.Models, []string{
		r.Output, r.Push, r.Baseline, r.Data.Path, r.Verification.Data.Path, r.Verification.Perplexity,
	}) {
		if redact.HasPassword(name) {
			return fieldErrorf("%s: a password in a name is not supported", remote.Shown(name))
		}
	}
	if remote.IsAddress(r.Output) {
		if err := remote.CheckOutput(r.Output); err != nil {
			return fieldErrorf("{Output} %w", err)
		}
	}
	for _, dir := range []string{r.Reports.Dir, r.ExportDir} {
		if remote.IsAddress(dir) {
			return fieldErrorf("%s: {Reports.Dir} and {ExportDir} are folders on disk", remote.Shown(dir))
		}
	}
	return nil
}

func (r Request) checkSteps() error {
	for i, s := range r.Steps {
		if err := checkStep(s); err != nil {
			return fieldErrorf("{Steps}: step %d %w", i+1, err)
		}
	}
	if _, err := r.target(); err != nil {
		return err
	}
	if err := pass.CheckDataFiles(r.DataFiles); err != nil {
		return fieldErrorf("{DataFiles}: %w", err)
	}
	if path := distill.Checkpoint(r.Steps); path != "" && len(r.Models) > 1 {
		return fieldErrorf("{FineTune.Save} %s is the checkpoint of one training, and there are %d models; train each "+
			"with a checkpoint of its own", path, len(r.Models))
	}
	return nil
}

// checkStep is an error for a step that is nil or describes no method.
func checkStep(s Step) error {
	switch v := reflect.ValueOf(s); {
	case !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil():
		return errors.New("is nil")
	case s.Method() == nil:
		return fmt.Errorf("is not the option struct of a method, but %T", s)
	}
	return nil
}

// target is the target that is named; nil for the default.
func (r Request) target() (*pass.Target, error) {
	if r.Target == "" {
		return nil, nil
	}
	t, err := pass.ParseTarget(r.Target, quantize.CPUs)
	if err != nil {
		return nil, fieldErrorf("{Target} %q: %w", r.Target, err)
	}
	return t, nil
}

func (s *Search) check() error {
	switch {
	case s == nil:
	case s.MaxSize < 0:
		return fieldErrorf("{Search.MaxSize} %d: must be a positive number", s.MaxSize)
	case s.MaxSize > 0 && s.MinRatio != 0:
		return fieldErrorf("{Search.MaxSize} and {Search.MinRatio} exclude each other")
	case s.MinRatio != 0 && !(s.MinRatio > 1):
		return fieldErrorf("{Search.MinRatio} %v: must be above 1", s.MinRatio)
	}
	return nil
}

func (r Request) checkSearch() error {
	switch {
	case r.Search == nil:
		return nil
	case len(r.Steps) > 0:
		return fieldErrorf("{Search} and {Steps} exclude each other")
	}
	return nil
}

// checkGoal is an error for a search that no gate and no size ends.
func (r Request) checkGoal() error {
	if r.Search != nil && r.Search.MaxSize == 0 && r.Search.MinRatio == 0 && !slices.ContainsFunc(r.Gates, searched) {
		return fieldErrorf("{Search} requires a goal: {Gates.max-accuracy-drop}, {Gates.max-metric-drop}, " +
			"{Gates.min-sqnr}, {Gates.min-cosine} or {Gates.min-agreement}, or {Search.MaxSize} or {Search.MinRatio}")
	}
	return nil
}

// searched reports whether a search keeps the gate: one on the outputs of both models.
func searched(g Gate) bool {
	return slices.ContainsFunc(verification.Rules(), func(r verification.Rule) bool {
		return r.Name == g.Name && !r.Timed
	})
}

func (r Reports) check() error {
	for _, name := range r.Formats {
		if _, known := report.FormatNamed(name); !known {
			return fieldErrorf("{Reports.Formats}: unknown format %q", name)
		}
	}
	_, err := r.Card()
	return err
}

// Card is the model card. One among the formats requires a base model.
func (r Reports) Card() (report.Card, error) {
	if r.NoDigests && slices.Contains(r.Formats, "intoto") {
		return report.Card{}, fieldErrorf("the report intoto requires digests, which {Reports.NoDigests} turns off")
	}
	c := report.Card{BaseModel: r.BaseModel, PipelineTag: r.PipelineTag}
	switch {
	case r.BaseModel == "none":
		c.BaseModel = ""
	case r.BaseModel == "" && slices.Contains(r.Formats, "card"):
		return c, fieldErrorf("the report card requires {Reports.BaseModel} OWNER/NAME, the source on the Hugging Face " +
			"Hub, or {Reports.BaseModel} none")
	}
	if err := c.Check(); err != nil {
		return c, fieldErrorf("%w", err)
	}
	return c, nil
}

func (l List) check() error {
	if l.Shard == "" {
		return nil
	}
	if _, err := fleet.ParseShard(l.Shard); err != nil {
		return fieldErrorf("{List.Shard}: %w", err)
	}
	return nil
}

// verified is the data that results are verified on.
func (r Request) verified() Data {
	d := r.Verification.Data
	if reflect.ValueOf(d).IsZero() {
		d = r.Data
	}
	if p := r.Verification.Perplexity; p != "" {
		d.Path, d.Labels, d.Columns, d.Classes = p, "", nil, nil
	}
	return d
}

// outputGate is the name of a gate that requires runs; "" if there is none.
func (r Request) outputGate() string { return r.gateOf(report.OnOutputs, report.OnTime) }

// gateOf is the name of a gate of one of the kinds; "" if there is none.
func (r Request) gateOf(kinds ...report.GateKind) string {
	for _, g := range r.Gates {
		if slices.Contains(kinds, report.KindOf(g.Name)) {
			return g.Name
		}
	}
	return ""
}

func (r Request) checkVerification() error {
	v := r.Verification
	switch gate := r.outputGate(); {
	case v.Skip && v.Force:
		return fieldErrorf("{Verification.Force} and {Verification.Skip} exclude each other")
	case v.Skip && gate != "":
		return fieldErrorf("{Gates.%s} requires verification, which {Verification.Skip} turns off", gate)
	}
	if v.Skip {
		return nil // nothing reads the samples, and options of theirs may be left of a run that was verified
	}
	if v.Batch < 0 {
		return fieldErrorf("{Verification.Batch} %d: must be a positive number", v.Batch)
	}
	if v.Samples < 0 {
		return fieldErrorf("{Verification.Samples} %d: must be a positive number", v.Samples)
	}
	d := r.verified()
	if err := CheckData(d); err != nil {
		return err
	}
	if v.Samples > 0 && d.Path != "" {
		return fieldErrorf("{Verification.Samples} applies to random inputs; {Data} has {Data.Limit}")
	}
	if err := v.checkBackend(); err != nil {
		return err
	}
	return r.checkMetric()
}

// CheckData is an error for samples that are not valid: a negative number, or options that samples have where there are
// none.
func CheckData(d Data) error {
	for _, n := range []struct {
		field string
		n     int
	}{{"Limit", d.Limit}, {"Step", d.Step}, {"Loaders", d.Loaders}} {
		if n.n < 0 {
			return fieldErrorf("{Data.%s} %d: must be a positive number", n.field, n.n)
		}
	}
	if d.Prefetch != nil && *d.Prefetch < 0 {
		return fieldErrorf("{Data.Prefetch} %d: must be 0 or a positive number", *d.Prefetch)
	}
	if d.Path != "" {
		return nil
	}
	for _, o := range []struct {
		field string
		given bool
	}{
		{"Labels", d.Labels != ""}, {"Columns", len(d.Columns) > 0}, {"Classes", len(d.Classes) > 0}, {"Scale", d.Scale != 0},
		{"Mean", len(d.Mean) > 0}, {"Std", len(d.Std) > 0}, {"Reshape", len(d.Reshape) > 0}, {"Layout", d.Layout != ""},
		{"Limit", d.Limit > 0}, {"Step", d.Step > 0},
		{"Prefetch", d.Prefetch != nil}, {"Loaders", d.Loaders > 0},
	} {
		if o.given {
			return fieldErrorf("{Data.%s} requires {Data}", o.field)
		}
	}
	return nil
}

func (v Verification) checkBackend() error {
	switch {
	case v.Backend != "" && v.Backend != latency.Embedded && v.Backend != latency.ORT:
		return fieldErrorf("{Verification.Backend}: there are %s and %s", latency.Embedded, latency.ORT)
	case v.Library != "" && v.Backend != latency.ORT:
		return fieldErrorf("{Verification.Library} requires {Verification.Backend} %s", latency.ORT)
	case v.WeightCache != "" && v.Backend == latency.ORT:
		return fieldErrorf("{Verification.WeightCache} requires {Verification.Backend} %s", latency.Embedded)
	}
	return nil
}

// checkMetric checks the metric and the gates that need one, or samples.
func (r Request) checkMetric() error {
	v, random := r.Verification, r.verified().Path == ""
	bounded := slices.ContainsFunc(r.Gates, func(g Gate) bool { return g.Name == "max-metric-drop" })
	accuracy := slices.ContainsFunc(r.Gates, func(g Gate) bool { return g.Name == "max-accuracy-drop" })
	switch {
	case random && accuracy:
		return fieldErrorf("{Gates.max-accuracy-drop} requires samples with labels: name them with {Data}")
	case v.Evaluator != nil && v.Command != nil:
		return fieldErrorf("{Verification.Evaluator} and {Verification.Command} exclude each other")
	case v.Metric != "" && v.evaluates():
		return fieldErrorf("{Verification.Metric} and {Verification.Command} exclude each other")
	case v.Perplexity != "" && (v.Metric != "" || v.evaluates()):
		return fieldErrorf("{Verification.Perplexity} excludes {Verification.Metric} and {Verification.Command}")
	case v.CommandLimit < 0:
		return fieldErrorf("{Verification.CommandLimit} %v: must be positive", v.CommandLimit)
	case bounded && v.Metric == "" && !v.evaluates() && v.Perplexity == "":
		return fieldErrorf("{Gates.max-metric-drop} requires {Verification.Metric}, {Verification.Command} or " +
			"{Verification.Perplexity}")
	}
	if v.Metric != "" {
		c, err := metric.Parse(v.Metric)
		if err != nil {
			return fieldErrorf("{Verification.Metric}: %w", err)
		}
		if random && c.Needs != metric.Reference {
			return fieldErrorf("{Verification.Metric} %s requires samples: name them with {Data}", c.Name)
		}
	}
	if gate := r.gateOf(report.OnOutputs); random && gate != "" && !v.AllowRandomInputs {
		return fieldErrorf("{Gates.%s} on random inputs is no evidence of accuracy: name samples of the model's task with "+
			"{Data}, or add {Verification.AllowRandomInputs}", gate)
	}
	return nil
}

// checkGates is an error for gates that do not exist or lack their baseline, and for a baseline without gates.
func (r Request) checkGates() error {
	for _, g := range r.Gates {
		if !slices.Contains(report.GateNames(), g.Name) {
			return fieldErrorf("{Gates}: unknown gate %q; there are %s", g.Name, strings.Join(report.GateNames(), ", "))
		}
	}
	return CheckBaseline(r.Gates, r.Baseline)
}

// CheckBaseline is an error for a gate relative to a baseline without one, and for a baseline without such a gate.
func CheckBaseline(gates []Gate, source string) error {
	relative := RelativeGate(gates)
	switch {
	case relative != "" && source == "":
		return fieldErrorf("{Gates.%s} requires {Baseline}", relative)
	case relative == "" && source != "" && source != noBaseline:
		return fieldErrorf("{Baseline} requires a gate relative to it, such as {Gates.max-baseline-size-ratio} 1")
	}
	return nil
}

// RelativeGate is the name of a gate relative to a baseline; "" if there is none.
func RelativeGate(gates []Gate) string {
	for _, name := range report.GateNames() {
		if report.Relative(name) && slices.ContainsFunc(gates, func(g Gate) bool { return g.Name == name }) {
			return name
		}
	}
	return ""
}

// checkPush checks the destination of the result without a connection.
func (r Request) checkPush() error {
	switch {
	case r.Push == "":
		return nil
	case len(r.Models) > 1:
		return fieldErrorf("{Push} requires one model, not %d", len(r.Models))
	case r.DryRun:
		return fieldErrorf("{Push} and {DryRun} exclude each other")
	}
	_, err := registry.Parse(r.Push)
	return err
}

// verification is that of the results; nil for none.
func (r Request) verification() (*job.Verification, error) {
	v := r.Verification
	if v.Skip {
		return nil, nil
	}
	d := r.verified()
	options, err := r.dataOptions()
	if err != nil {
		return nil, err
	}
	classes, err := r.classes(d)
	if err != nil {
		return nil, err
	}
	backend, err := r.backend()
	if err != nil {
		return nil, err
	}
	measure, err := v.measure()
	if err != nil {
		return nil, err
	}
	j := &job.Verification{
		Data:    job.Data{Path: d.Path, Classes: classes, Seed: v.Seed, Samples: v.Samples, Batch: v.Batch, Options: options},
		Backend: backend, Scores: v.Scores, Metric: measure, Layers: !v.NoLayers && backend.Embedded(),
		Digest: !r.Reports.NoDigests,
	}
	j.Tolerance.Relative, j.Tolerance.Absolute = v.Relative, v.Absolute
	j.Demand(v.Force, r.Gates)
	return j, nil
}

// dataOptions are the options of the samples for verification.
func (r Request) dataOptions() (dataset.Options, error) {
	o, err := (&dataset.Source{Samples: r.verified()}).Options(r.Limits.Workers)
	if err != nil {
		return o, &pass.OptionError{Err: err}
	}
	return o, nil
}

// classes is the data whose classes number the labels of the samples d for verification; nil for classes of its own.
func (r Request) classes(d Data) (*job.Data, error) {
	of := r.Verification.Training
	if of == nil && r.Data.Path != "" && r.Data.Path != d.Path {
		of = &r.Data
	}
	if of == nil || of.Path == "" || r.Verification.Perplexity != "" {
		return nil, nil
	}
	options, err := (&dataset.Source{Samples: *of}).Options(r.Limits.Workers)
	if err != nil {
		return nil, &pass.OptionError{Err: err}
	}
	return &job.Data{Path: of.Path, Options: dataset.Options{Labels: options.Labels, Columns: options.Columns,
		Classes: options.Classes}}, nil
}

// A LibraryError is ONNX Runtime's library, missing or not usable.
type LibraryError struct{ Err error }

func (e *LibraryError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *LibraryError) Unwrap() error { return e.Err }

// backend runs the models.
func (r Request) backend() (job.Backend, error) {
	v := r.Verification
	b := job.Backend{Workers: r.Limits.Workers, Limits: r.Limits.run().Half()}
	if v.WeightCache != "" {
		b.Cache = &weightcache.Cache{Dir: v.WeightCache, Warn: r.Events.warn}
	}
	if v.Backend != latency.ORT {
		return b, nil
	}
	path, err := ort.Find(v.Library)
	if err == nil {
		b.Library, err = ort.Load(path)
	}
	if err != nil {
		return b, &LibraryError{err}
	}
	return b, nil
}

// evaluates reports whether a function or a program measures.
func (v Verification) evaluates() bool { return v.Evaluator != nil || v.Command != nil }

// DefaultCommandLimit is the default of Verification.CommandLimit.
const DefaultCommandLimit = 10 * time.Minute

// evaluator is the function or program that measures; nil for none.
func (v Verification) evaluator() metric.Evaluator {
	if v.Command != nil {
		return metric.Command(v.Command, cmp.Or(v.CommandLimit, DefaultCommandLimit))
	}
	return v.Evaluator.internal()
}

// commandIdentity is the program as checkpoints of training recognize it: its arguments, and the contents of those that
// are files.
func (v Verification) commandIdentity(ctx context.Context) string {
	args := slices.Clone(v.Command)
	for i, arg := range args {
		if st, err := os.Stat(arg); err != nil || !st.Mode().IsRegular() {
			continue // a word, or an address that is not fetched
		}
		if sum, _, err := digest.File(ctx, arg, nil); err == nil {
			args[i] += " " + sum
		}
	}
	return strings.Join(args, "\n")
}

// measure is the metric besides accuracy; nil for none.
func (v Verification) measure() (metric.Measure, error) {
	switch {
	case v.Perplexity != "":
		return metric.Parse("perplexity")
	case v.evaluates():
		return v.evaluator().Measure(), nil
	case v.Metric != "":
		return metric.Parse(v.Metric)
	}
	return nil, nil
}
