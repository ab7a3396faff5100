package mcompress

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/internal/weightcache"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
)

// An Option is a setting of a run, made by one of the With functions. It is a Step, so that steps and options are one list.
type Option func(*settings)

// Method returns nil: an option is not a method.
func (Option) Method() *pass.Method { return nil }

// Data names samples and how they become the inputs of a model. Only Path is required. The formats are .npz, .npy, IDX, CSV, CIFAR-10,
// folders of .npy files, of images, and of ONNX test data. Option structs that need data embed it.
type Data = pass.Samples

// A Progress is how much of a run is done.
type Progress struct {
	Stage       string  // "write", with bytes in Done and Total, or "train", with steps
	Done, Total int64   //
	Loss        float64 // of the last step of training
}

// WithData names the samples for calibration, training and verification, unless a method has data of its own.
func WithData(path string) Option { return WithDataset(Data{Path: path}) }

// WithDataset is WithData with options of the data.
func WithDataset(d Data) Option { return func(s *settings) { s.data = d } }

// WithTestData names the samples for verification, separate from those for calibration and training.
func WithTestData(d Data) Option { return func(s *settings) { s.test = d } }

// WithVerify verifies the result against its source whatever the size of the model, or, if on is false, never. Without the option,
// models with up to 512 MiB of weights are verified; without data the inputs are random, which is no evidence of accuracy.
func WithVerify(on bool) Option { return func(s *settings) { s.verify = &on } }

// WithGates sets limits that the result must keep. Gates on outputs verify the result, and require data or WithAllowRandomInputs.
func WithGates(gates ...Gate) Option {
	return func(s *settings) { s.gates = append(s.gates, gates...) }
}

// WithAllowRandomInputs accepts gates on outputs without data: the inputs are random then, which is no evidence of accuracy.
func WithAllowRandomInputs() Option { return func(s *settings) { s.allowRandom = true } }

// WithMetric measures a metric on the data, besides accuracy: one of "top1", "top5", "f1", "map", "box-agreement", "cer", "spearman", "embedding-cosine",
// "nearest-centroid" and "perplexity", with options after colons, as in "cer:blank=0". The gate MaxMetricDrop bounds its drop. Steps that
// train keep the weights that are best by it on their validation set, unless they have a metric of their own.
func WithMetric(name string) Option { return func(s *settings) { s.metric = name } }

// EvaluatorFiles are the .npz files of an Evaluator: outputs of the reference and of the model by their names, and inputs and "labels". The first
// axis of arrays is samples; an array whose runs differ in other axes is one array for each run, NAME.0, NAME.1 and so on. They are removed
// after the call.
type EvaluatorFiles = metric.Files

// An EvaluatorValue is the metric that an Evaluator measures.
type EvaluatorValue = metric.Value

// An Evaluator measures a metric of the model of the candidate file, which is the reference in the first call.
type Evaluator = metric.Evaluator

// WithEvaluator measures a metric by a function, instead of WithMetric, for the same purposes.
func WithEvaluator(e Evaluator) Option { return func(s *settings) { s.evaluator = e } }

// EvaluatorCommand is the Evaluator that runs a program for at most the given time, with the paths of the reference, candidate and data files
// after its arguments. The program writes a JSON object with name, value and higher_is_better to its standard output.
func EvaluatorCommand(limit time.Duration, program string, args ...string) Evaluator {
	return metric.Command(append([]string{program}, args...), limit)
}

// WithMemoryLimit bounds the memory for weights that are processed and models that are run, in bytes: a run that needs more is an error.
// The default is 256 MiB for weights, and half of the memory that the process can get for runs. It does not set the soft limit of the Go
// runtime: see debug.SetMemoryLimit.
func WithMemoryLimit(bytes int64) Option { return func(s *settings) { s.memory = bytes } }

// WithMaxSteps bounds the steps of one run of a model: a node that is executed counts as a step, in a loop each time, and several times if
// it reads and writes more than 128 KiB. The default is 2 million.
func WithMaxSteps(n int64) Option { return func(s *settings) { s.maxSteps = n } }

// WithWorkers sets the number of worker threads; the default is one per CPU. Results do not depend on it.
func WithWorkers(n int) Option { return func(s *settings) { s.workers = n } }

// WithWeightCache keeps packed weights of models in a folder: later sessions and verifications of the same model map them into memory
// that is common to their processes, instead of reading and packing the weights again. warn, which may be nil, is called with errors of the
// folder; these do not prevent sessions. Files of the folder may be deleted at any time.
func WithWeightCache(dir string, warn func(error)) Option {
	return func(s *settings) { s.cache = &weightcache.Cache{Dir: dir, Warn: warn} }
}

// WithProgress calls f while weights are written and after each step of training, from several goroutines.
func WithProgress(f func(Progress)) Option { return func(s *settings) { s.progress = f } }

// WithReports writes the report in these formats, the names of report.Formats, next to the result: "json", "md", "html" and others.
func WithReports(formats ...string) Option { return func(s *settings) { s.reports = formats } }

// WithTarget names what will run the result, separated by commas: runtimes, such as "ort" (the newest ONNX Runtime), "ort-1.20", "web" or
// "openvino", all of which are to run it, and a CPU: "cpu-avx2", "cpu-vnni", "arm64" or "any". The word "standard-ops" forbids operators
// outside of ONNX. The target chooses the forms of weights, and options of quantization that are not given. Without it the result loads in
// ONNX Runtime from 1.20 on, and is not slower there than the source.
func WithTarget(names string) Option { return func(s *settings) { s.target = names } }

// WithStripMetadata leaves the doc strings and metadata of graphs, functions, nodes, attributes, values and tensors out of the result, such
// as stack traces of exporters. Those of the model itself stay.
func WithStripMetadata() Option { return func(s *settings) { s.strip = true } }

// WithDryRun computes sizes and the report, and writes nothing.
func WithDryRun() Option { return func(s *settings) { s.dryRun = true } }

// settings are the values of options.
type settings struct {
	data, test Data
	cache      *weightcache.Cache
	verify     *bool
	gates      []Gate

	allowRandom bool // gates on outputs of random inputs

	metric    string
	evaluator Evaluator
	memory    int64
	maxSteps  int64
	workers   int
	progress  func(Progress)
	reports   []string
	target    string
	strip     bool
	dryRun    bool

	memoryProfile *MemoryProfile // of sessions; may be nil
}

const defaultMemory = 256 << 20

// recipes is the memory of lazy tensors: half of the memory limit.
func (s *settings) recipes() int64 { return max(1, cmp.Or(max(s.memory, 0), defaultMemory)/2) }

// limits are those of a run of a model.
func (s *settings) limits() memory.Limits {
	return memory.LimitsOf(cmp.Or(max(s.memory, 0), defaultMemory), s.memory > 0, s.maxSteps)
}

func (s *settings) threads() int {
	if s.workers > 0 {
		return s.workers
	}
	return runtime.GOMAXPROCS(0)
}

// steps returns the methods with the data and the target.
func (s *settings) steps(methods []pass.Options) ([]pass.Options, *pass.Target, error) {
	steps := make([]pass.Options, len(methods))
	for i, m := range methods {
		var err error
		if steps[i], err = pass.Preset(m, pass.Group(&s.data)); err != nil {
			return nil, nil, err
		}
	}
	steps = distill.WithMetric(steps, s.metric, "", s.evaluator, "")
	if s.target == "" {
		return steps, nil, nil
	}
	target, err := pass.ParseTarget(s.target, quantize.CPUs)
	if err != nil {
		return nil, nil, pass.OptionErrorf("unknown target %q: %w", s.target, err)
	}
	target, err = target.Apply(steps)
	return steps, target, err
}

// apply sets the options of a job.
func (s *settings) apply(o *job.Options) error {
	o.Workers, o.Memory, o.Limits = s.threads(), s.recipes(), s.limits()
	o.Digest, o.Sync, o.Errors, o.DryRun, o.Strip = true, true, true, s.dryRun, s.strip
	for _, format := range s.reports {
		if _, known := report.FormatNamed(format); !known {
			return pass.OptionErrorf("unknown report format %q", format)
		}
	}
	o.Reports = s.reports
	o.Gates = s.reportLimits()
	if f := s.progress; f != nil {
		o.Progress = func(done, total int64) { f(Progress{Stage: "write", Done: done, Total: total}) }
		o.Trained = func(p pass.Progress) {
			if !p.Done {
				f(Progress{Stage: "train", Done: int64(p.Step), Total: int64(p.Steps), Loss: p.Loss})
			}
		}
	}
	if s.verify != nil && !*s.verify {
		if s.measured() {
			return pass.OptionErrorf("a gate on outputs requires verification")
		}
		return nil
	}
	v, err := s.verification()
	o.Verify = &v
	return err
}

// measured reports whether some gate requires a run of the models.
func (s *settings) measured() bool {
	return slices.ContainsFunc(s.gates, Gate.measured)
}

// verification is on the test data, else on the data.
func (s *settings) verification() (job.Verification, error) {
	d := s.test
	if d.Path == "" {
		d = s.data
	}
	classes, err := s.classes()
	if err != nil {
		return job.Verification{}, &pass.OptionError{Err: err}
	}
	options, err := (&dataset.Source{Samples: d}).Options(s.threads())
	if err != nil {
		return job.Verification{}, &pass.OptionError{Err: err}
	}
	measure, err := s.measure(d)
	if err != nil {
		return job.Verification{}, &pass.OptionError{Err: err}
	}
	if i := slices.IndexFunc(s.gates, Gate.onOutputs); i >= 0 && d.Path == "" && !s.allowRandom {
		return job.Verification{}, pass.OptionErrorf("gate %s on random inputs is no evidence of accuracy: name samples of the model's task with WithData or WithTestData, or add WithAllowRandomInputs", s.gates[i].Name)
	}
	v := job.Verification{
		Metric:  measure,
		Data:    job.Data{Path: d.Path, Classes: classes, Options: options},
		Backend: job.Backend{Workers: s.threads(), Limits: s.limits().Half(), Cache: s.cache},
		Layers:  true, Digest: true,
	}
	v.Demand(s.verify != nil && *s.verify, s.reportLimits())
	return v, nil
}

// reportLimits are the gates for reports.
func (s *settings) reportLimits() []report.Limit {
	var limits []report.Limit
	for _, g := range s.gates {
		limits = append(limits, report.Limit(g))
	}
	return limits
}

// measure is the metric on the data, nil for none.
func (s *settings) measure(d Data) (metric.Measure, error) {
	bounded := slices.ContainsFunc(s.gates, func(g Gate) bool { return g.Name == "max-metric-drop" })
	switch {
	case s.metric != "" && s.evaluator != nil:
		return nil, errors.New("WithMetric and WithEvaluator exclude each other")
	case s.evaluator != nil:
		return s.evaluator.Measure(), nil
	case s.metric == "" && bounded:
		return nil, errors.New("MaxMetricDrop requires WithMetric or WithEvaluator")
	case s.metric == "":
		return nil, nil
	}
	c, err := metric.Parse(s.metric)
	if err != nil {
		return nil, err
	}
	if d.Path == "" && c.Needs != metric.Reference {
		return nil, fmt.Errorf("metric %s requires data", c.Name)
	}
	return c, nil
}

// classes is the data whose classes number the labels of the test data, nil without test data.
func (s *settings) classes() (*job.Data, error) {
	if s.test.Path == "" || s.data.Path == "" {
		return nil, nil
	}
	options, err := (&dataset.Source{Samples: s.data}).Options(s.threads())
	return &job.Data{Path: s.data.Path, Options: options}, err
}
