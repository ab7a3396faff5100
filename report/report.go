package report

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

// SchemaVersion is the version of the JSON form, described by docs/report-schema.json.
// Added optional fields leave it alone.
const SchemaVersion = 3

// A Report accounts for every byte of a compressed model. Its fields are in the order of
// the JSON form. All sizes are bytes.
type Report struct {
	SchemaVersion int     `json:"schema_version"`
	Digest        string  `json:"digest,omitempty"` // of Digest
	Tool          Tool    `json:"tool"`
	Recipe        *Recipe `json:"recipe,omitempty"`
	// of the options and inputs of the run; empty where it was not recorded
	Request string `json:"request_sha256,omitempty"`
	Source  Side   `json:"source"`
	// the teacher of a given student: figures before, errors of outputs and gates compare with it; nil where they compare
	// with the source
	Reference *Side    `json:"reference,omitempty"`
	Result    Side     `json:"result"`
	Totals    Totals   `json:"totals"`
	Coverage  Coverage `json:"coverage"`
	Verdict   Verdict  `json:"verdict"`
	Gates     []Gate   `json:"gates"`
	Modules   []Module `json:"modules,omitempty"` // the weights by module, nil where they have none
	Weights   []Weight `json:"weights"`
	Ledger    []Row    `json:"ledger"`

	Verification *verification.Result `json:"verification,omitempty"` // nil where the models were not to be run
	Histograms   []WeightHistogram    `json:"histograms,omitempty"`   // of the weights with the lowest SQNR
	Copied       *Copied              `json:"copied,omitempty"`       // nil where only the model was written
	Removed      []pass.RemovedLayers `json:"removed_layers,omitempty"`
	Config       []pass.ConfigValue   `json:"config_values,omitempty"`
	Training     []pass.Training      `json:"training,omitempty"`
	Teachers     []Teacher            `json:"teachers,omitempty"` // models that steps trained the result on
	Data         []Data               `json:"data,omitempty"`     // samples that steps and the search used
	Search       *pass.Search         `json:"search,omitempty"`   // nil where methods were not chosen by measurement
	Target       *pass.Target         `json:"target,omitempty"`   // nil where options were not chosen for one
	Hints        []string             `json:"hints,omitempty"`    // limitations of the result at run time
	Baseline     *Baseline            `json:"baseline,omitempty"` // nil where no gate is relative to one

	// a document of its own, so that equal runs have equal reports; nil where it is not known
	Environment *Environment `json:"-"`
}

// The keys in metadata_props of a result by which it and its report are matched.
const (
	KeyVersion = "mcompress.version"       // Tool.Version
	KeyRecipe  = "mcompress.recipe_sha256" // Recipe.SHA256
	KeySource  = "mcompress.source_sha256" // onnx.Combined of the files of Source
)

// A Tool is the program that compressed the model.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// A Recipe is the pipeline with every option in force: it reproduces the result.
type Recipe struct {
	SHA256 string        `json:"sha256"` // of Sum
	Text   string        `json:"text"`   // YAML
	Inputs []RecipeInput `json:"inputs,omitempty"`
}

// A RecipeInput is a file, a model with its data files, or a folder that an option of a step names.
type RecipeInput struct {
	Name string `json:"name"` // as the text has it
	// of the file, or of the list of several as sha256sum prints it; absent without digests
	SHA256 string `json:"sha256,omitempty"`
}

// Sum is the digest of r, in hexadecimal: the SHA-256 of the canonical form (RFC 8785) of its JSON form without
// "sha256".
func (r *Recipe) Sum() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	return digestWithout(text, "sha256")
}

// A Side is one of the two models.
type Side struct {
	Files     []File  `json:"files"`
	Planned   bool    `json:"planned,omitempty"` // not written: the sizes are those it would have
	IRVersion int64   `json:"ir_version"`
	Opsets    []Opset `json:"opsets"`
}

// A File is one file of a model, named relative to the model's folder.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// An Opset is one operator set that a model imports.
type Opset struct {
	Domain  string `json:"domain"`
	Version int64  `json:"version"`
}

// Input is the input of Build. Source and Result are models as opened from
// files: the one a pass has rewritten is no Source any more, open the file again.
type Input struct {
	Tool, Version  string
	Recipe         *Recipe // nil if there was none
	Request        string
	Source, Result Model
	Reference      *Model     // nil if the result is compared with Source
	Rows           []pass.Row // nil for two files of unknown history: Build then matches their tensors
	Gates          []Limit
	Verification   *verification.Result // of Source and Result; nil if the models were not run
	Copied         *Copied
	Removed        []pass.RemovedLayers
	Config         []pass.ConfigValue
	Training       []pass.Training
	Teachers       []Model
	Data           []Data
	Search         *pass.Search
	Target         *pass.Target
	Hints          []string
	Baseline       *Baseline
	Environment    *Environment

	// Files are those of Source and Result, called once the weights are measured: their digests may be known later than
	// the models are. Nil if Source and Result have them.
	Files func(context.Context) (source, result []File, err error)

	Eval    *ir.Eval
	Workers int

	// Expression, for two files of unknown history, is the weight of the given type that a constant expression of
	// Result computes, such as a dequantized or expanded one; nil if it cannot be computed. Without it such weights
	// have neither errors nor sparsity.
	Expression func(v *ir.Value, as ir.Spec) *ir.Tensor

	// Errors measures the error and the sparsity of every weight, which reads all of
	// both models; the rest reads only their graphs.
	Errors bool

	// Journal has figures that other processes measured, and keeps those of this one; nil for none. Mine reports
	// whether this process measures a tensor of the result; nil if it measures all. If figures are missing in the end,
	// Build returns an *ir.Elsewhere.
	Journal ir.Journal
	Mine    func(*ir.Tensor) bool

	// NoDigest leaves Digest out, which encodes the report.
	NoDigest bool
}

// A Model is one side of a report.
type Model struct {
	Path  string // only its base name is used, where Files is empty
	Files []File
	IR    *ir.Model

	// Metadata is the bytes of doc strings and metadata below the model.
	Metadata int64

	// Planned means that IR was not opened from files but is still to be written. Recipes in it
	// count as their outputs.
	Planned bool
}

// Build makes a report. The result is a function of models, recipe, rows and
// gates alone. Memory grows with the number of tensors and by a few blocks of
// ir.CopyBuffer for each worker.
func Build(ctx context.Context, in Input) (*Report, error) {
	rows := in.Rows
	if rows == nil {
		var err error
		if rows, err = match(ctx, in); err != nil {
			return nil, err
		}
	}
	c, err := newChain(ctx, rows, in.Result.IR)
	if err != nil {
		return nil, err
	}
	r := &Report{
		SchemaVersion: SchemaVersion,
		Tool:          Tool{in.Tool, in.Version},
		Recipe:        in.Recipe,
		Request:       in.Request,
		Weights:       c.weights(),
		Ledger:        c.ledger(),
		Verification:  markUses(ranOnly(in.Verification), in.Data),
		Copied:        in.Copied,
		Removed:       in.Removed,
		Config: slices.DeleteFunc(
			slices.Clone(in.Config),
			func(v pass.ConfigValue) bool { return !v.Changed() },
		),
		Training:    in.Training,
		Data:        in.Data,
		Search:      in.Search,
		Target:      in.Target,
		Hints:       in.Hints,
		Baseline:    in.Baseline,
		Environment: in.Environment,
	}
	if in.Errors {
		if err := r.measure(ctx, in, c); err != nil {
			return nil, err
		}
	}
	// After the weights are measured: digests of files that are still being written are known last.
	if in.Files != nil {
		if in.Source.Files, in.Result.Files, err = in.Files(ctx); err != nil {
			return nil, err
		}
	}
	r.Source, r.Result = side(in.Source), side(in.Result)
	before := in.Source
	if in.Reference != nil {
		before = *in.Reference
		s := side(before)
		r.Reference = &s
	}
	if r.Teachers, err = teachers(ctx, in, r.Source); err != nil {
		return nil, err
	}
	if r.Totals, err = totals(ctx, before, in.Result, r); err != nil {
		return nil, err
	}
	r.Totals.Sparsity = r.sparsity(in.Source.IR)
	if v := in.Verification; v != nil && v.Activations != nil {
		r.Totals.Activations = &Change{v.Activations.Before, v.Activations.After}
	}
	if v := in.Verification; v != nil && v.Weights != nil {
		r.Totals.Engine = &Change{v.Weights.Before, v.Weights.After}
	}
	r.Coverage = coverage(r.Weights)
	r.Modules = modules(r.Weights)
	// After all figures, which gates are about; the verdict follows from them, and the digest is of everything else.
	if r.Gates, err = evaluate(r, in.Gates); err != nil {
		return nil, err
	}
	r.Verdict = NewVerdict(r.Gates, r.Verification)
	if !in.NoDigest {
		r.Digest, err = r.digest(ctx)
	}
	return r, err
}

// ranOnly is v without the figures of the totals.
func ranOnly(v *verification.Result) *verification.Result {
	if v == nil {
		return nil
	}
	bare := *v
	bare.Activations, bare.Weights = nil, nil
	return &bare
}

// before is the model that figures of the result are compared with.
func (r *Report) before() Side {
	if r.Reference != nil {
		return *r.Reference
	}
	return r.Source
}

// reference is the role of the model that figures of the result are compared with.
func (r *Report) reference() string {
	if r.Reference != nil {
		return "teacher"
	}
	return "source"
}

func side(m Model) Side {
	s := Side{Files: m.Files, Planned: m.Planned, IRVersion: m.IR.IRVersion, Opsets: []Opset{}}
	if s.Files == nil {
		s.Files = []File{{Name: filepath.Base(m.Path)}}
	}
	for _, o := range m.IR.Opsets {
		s.Opsets = append(s.Opsets, Opset{o.Domain, o.Version})
	}
	return s
}
