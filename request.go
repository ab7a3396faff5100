package mcompress

import (
	"context"
	"errors"
	"time"

	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A Step is a method with its options, such as quantize.DynamicInt8{}: one of the option structs of the packages
// quantize, prune, distill and sparse.
type Step = pass.Options

// Data names samples and how they become the inputs of a model. Only Path is required. The formats are .npz, .npy, IDX,
// CSV, CIFAR-10, folders of .npy files, of images, and of ONNX test data. Option structs that need data embed it.
type Data = pass.Samples

// A Gate is a limit that a result must keep: the constructors such as MinSQNR make them, report.GateNames names all.
type Gate = report.Limit

// A Request is all that a run is asked for: the models, what is done with them, what results must keep, and where they
// go. The zero values of its fields are defaults. The program fills one from its flags.
type Request struct {
	// Models are paths, patterns of paths, https:// and s3://BUCKET/KEY URLs, and references to registries such as
	// oci://HOST/NAME:TAG.
	Models []string

	Steps    []Step    `json:"-"` // in their order; without any the models are copied
	Search   *Search   // finds the steps by measurement; nil for Steps
	Variants *Variants // writes several results of each model; nil for one
	Data     Data      // for steps that read samples and name none, and for verification

	// Target is what will run the results, separated by commas: runtimes, such as "ort" (the newest ONNX Runtime),
	// "ort-1.20", "web" or "openvino", all of which are to run them, and a CPU: "cpu-avx2", "cpu-vnni", "arm64" or "any".
	// The word "standard-ops" forbids operators outside of ONNX. The target chooses the forms of weights, and options of
	// quantization that are not given. Without it results load in ONNX Runtime from 1.20 on, and are not slower there
	// than the source.
	Target string

	// Output is the path of the result, packed if its name ends in .mcz; or a folder, which several models require: one
	// that exists, or a path with a slash at the end; or a URL s3://BUCKET/KEY. The files that a model needs next to it,
	// such as configuration and tokenizer, are copied to a folder. Empty for NAME.LABEL.onnx next to the model.
	Output    string
	Label     string // of default names; empty for the name of the first step
	ExportDir string // folder for sparse weights as .npz files; empty for none
	DataFiles int    // number of external data files, of about equal cost; 0 for one where it is needed
	// StripMetadata leaves out doc strings and metadata but those of the model itself, such as stack traces of exporters.
	StripMetadata bool
	KeepIR        bool // keep the IR version of the model; below 4, new initializers are also graph inputs
	DryRun        bool // compute sizes and reports, write nothing
	NoSync        bool // do not flush files to the disk
	Restart       bool // drop the results of an interrupted run, in the folder OUTPUT.partial, instead of continuing it

	Verification Verification
	Gates        []Gate // that results must keep: see RejectedError
	// Baseline is the report of an earlier result, the path of its model, a reference, or "none", for gates relative to
	// it.
	Baseline string

	// BaselineOptional lets the baseline be missing, for the first result: gates relative to it are then open.
	BaselineOptional bool

	Reports Reports
	List    List
	// Push is where the result and its reports are pushed if all gates held: oci://HOST/REPOSITORY:TAG, mlflow://…,
	// hf:DIR, dir:DIR.
	Push     string
	Registry Registry
	Limits   Limits
	Events   Events `json:"-"`

	// Alternative is a method that Outcome.Alternative tells of where a result is hardly smaller than its source; nil for
	// none.
	Alternative Step `json:"-"`

	source     func() (*onnx.File, error) // opens the model that is not a file on disk; nil for Models
	division   *division                  // of the run between processes; nil for none
	mustChange bool                       // see job.Options
	dataSuffix string                     // likewise
}

// A Verification describes how results are compared with their sources before they are published: both models run on
// the same samples.
type Verification struct {
	Force bool // whatever the size of the model; otherwise up to 512 MiB of weights, or with data or gates on outputs
	Skip  bool

	// Data names samples; the zero value stands for Request.Data. Without a Path inputs are random, which is no evidence
	// of accuracy.
	Data  Data
	Batch int // size if the batch axis is dynamic; 0 for 1

	// Training is the data whose classes number the labels of Data, which may have others; nil for Request.Data if Data
	// is other data.
	Training *Data

	Samples           int    // number of random samples; 0 for 1 to 8, by the size of the model
	Seed              uint64 // of random samples
	AllowRandomInputs bool   // accept gates on outputs of random inputs, which are no evidence of accuracy

	// Metric is measured besides accuracy: one of "top1", "top5", "f1", "map", "box-agreement", "cer", "spearman",
	// "embedding-cosine", "nearest-centroid" and "perplexity", with options after colons, as in "cer:blank=0". The gates
	// max-metric-drop and max-baseline-metric-drop bound its drop. Steps that train keep the weights that are best by it
	// on their validation set, unless they have a metric of their own.
	Metric    string
	Evaluator Evaluator `json:"-"` // measures instead of Metric; nil for none

	// Command measures instead of Metric, too: a program with its arguments, which is run without a shell for at most
	// CommandLimit (0 for 10 minutes). The paths of the reference, candidate and data files of EvaluatorFiles follow its
	// arguments, and it writes a JSON object with name, value and higher_is_better to its standard output.
	Command      []string
	CommandLimit time.Duration

	Perplexity string // path of token ids: the metric perplexity of these samples, instead of Metric on Data

	Scores   string // output with classes or scores; empty for the first suitable one
	NoLayers bool   // compare outputs only

	Backend     string // "embedded", the default, or "ort" for ONNX Runtime
	Library     string // path of ONNX Runtime's library or its folder; empty for that of the environment or system
	WeightCache string // folder that keeps packed weights for later runs; empty for none

	Relative, Absolute *float64 // tolerances of recorded outputs; nil for those of the element types
}

// A Search finds the method of each weight by measurement: it measures the sensitivity of the outputs to each candidate
// for each weight, and searches the smallest model that keeps the gates on outputs, or of at most MaxSize the most
// accurate one.
type Search struct {
	Candidates []string      // methods with their options, as in "weight-int4:block=64:algo=hqq"; nil for the default ones
	Options    []pass.Option // of all candidates that have them
	MaxSize    int64         // of the file in bytes; 0 for the smallest that keeps the gates
	MinRatio   float64       // instead of MaxSize: the size of the source divided by this; 0 for none
}

// Variants are the files that transformers.js loads for its dtypes.
type Variants struct {
	DTypes  []string      // of VariantNames
	Options []pass.Option // of all methods that have them
}

// Reports describes the documents about results.
type Reports struct {
	Formats     []string // names of report.Formats: "json", "md", "html" and others
	Dir         string   // folder; empty for that of the result
	NoDigests   bool     // of files
	NoErrors    bool     // leave out the error of each weight, for which weights are read once more
	BaseModel   string   // of model cards: OWNER/NAME of the source on the Hugging Face Hub, or "none"
	PipelineTag string   // of model cards: the task, such as "image-classification"
}

// A List says how many models are processed.
type List struct {
	KeepPaths bool // results have the paths of the models below Output, which gets an index of their reports
	// Shard is "INDEX/COUNT", the part of the models of about equal bytes; with KeepPaths empty for that of the
	// environment.
	Shard     string
	IfChanged bool // skip models whose result is there: its report has the digests of source, options, inputs and files
	FailFast  bool // end after the first model that failed or was rejected
}

// Registry describes connections to registries.
type Registry struct {
	PlainHTTP bool // without TLS; loopback addresses only
	Insecure  bool // do not verify certificates
	Overwrite bool // replace a tag, alias or file that exists with other content
}

// Limits are limits on resources. Results do not depend on them.
type Limits struct {
	Workers int // threads; 0 for one per CPU
	// Memory is the bytes for weights that are processed and models that run; 0 for 256 MiB for weights, and half of the
	// available memory for runs.
	Memory int64
	// Steps are those of one run of a model, which bounds loops: a node that runs is a step, or several if it reads and
	// writes more than 128 KiB; 0 for 2 million.
	Steps int64
}

// Events are functions that are called during a run; each may be nil.
type Events struct {
	Selected func(Selection) error // once, before the first model
	Warning  func(error)           // what may be wrong with the result, or was left out; it may be a *FieldError
	Note     func(text string)     // what a user may want to know
	Progress func(Progress)        // from several goroutines
	Outcome  func(Outcome) error   // after each model; an error ends the run

	// Steps is called before each model, and returns the steps for it: such as steps that train with a recorder.
	Steps func(model string, steps []Step) []Step
}

// warn warns, unless err is nil.
func (e Events) warn(err error) {
	if e.Warning != nil && err != nil {
		e.Warning(err)
	}
}

// warnText warns, unless the text is empty.
func (e Events) warnText(text string) {
	if text != "" {
		e.warn(errors.New(text))
	}
}

func (e Events) note(text string) {
	if e.Note != nil {
		e.Note(text)
	}
}

// The stages of a run that report progress.
const (
	StageSearch   = "search"   // runs of a model
	StageTrain    = "train"    // steps
	StageWrite    = "write"    // bytes
	StageTransfer = "transfer" // bytes from or to a registry
)

// A Progress is how much of a stage of a run is done.
type Progress struct {
	Model       string
	Stage       string
	Done, Total int64
	Loss        float64        // of the last step of training
	Training    *pass.Progress // the state of training; nil for other stages
	Ended       bool           // nothing more of the stage follows
}

// stage returns a function that reports progress of a stage, and one that ends it. Both do nothing if progress is nil.
func (e Events) stage(model, stage string) (show func(done, total int64), end func()) {
	if e.Progress == nil {
		return nil, func() {}
	}
	return func(done, total int64) { e.Progress(Progress{Model: model, Stage: stage, Done: done, Total: total}) },
		func() { e.Progress(Progress{Model: model, Stage: stage, Ended: true}) }
}

// EvaluatorFiles are the .npz files of an Evaluator: outputs of the reference and of the model by their names, and
// inputs and "labels". The first axis of arrays is samples; an array whose runs differ in other axes is one array for
// each run, NAME.0, NAME.1 and so on. They are removed after the call. ReadArrays reads them.
type EvaluatorFiles struct{ Reference, Candidate, Data string }

// An EvaluatorValue is the metric that an Evaluator measures.
type EvaluatorValue struct {
	Name           string
	Value          float64
	HigherIsBetter bool
}

// An Evaluator measures a metric of the model of the candidate file, which is the reference in the first call.
type Evaluator func(ctx context.Context, f EvaluatorFiles) (EvaluatorValue, error)

// internal is e for the packages that call it; nil for nil.
func (e Evaluator) internal() metric.Evaluator {
	if e == nil {
		return nil
	}
	return func(ctx context.Context, f metric.Files) (metric.Value, error) {
		v, err := e(ctx, EvaluatorFiles(f))
		return metric.Value(v), err
	}
}
