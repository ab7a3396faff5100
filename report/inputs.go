package report

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/report/verification"
)

// Data is the samples that a step, or the search of --auto, ran a model on. Those of the verification are in its
// result.
type Data struct {
	Use     string       `json:"use"`              // calibration, training, validation or search
	Method  string       `json:"method,omitempty"` // of the step; empty for the search
	Name    string       `json:"name,omitempty"`   // as in the inputs of the recipe; empty for random inputs
	SHA256  string       `json:"sha256,omitempty"` // as in the inputs of the recipe
	Labels  *RecipeInput `json:"labels,omitempty"` // the file of the labels, where they are in another one
	Samples int          `json:"samples"`          // each counted once
	Random  bool         `json:"random_inputs"`
	Seed    uint64       `json:"seed,omitempty"` // of random inputs
}

// markUses returns v, whose data has the uses of data of the same digest.
func markUses(v *verification.Result, data []Data) *verification.Result {
	if v == nil || v.Data == nil || v.Data.SHA256 == "" {
		return v
	}
	for _, d := range data {
		if d.SHA256 == v.Data.SHA256 && !slices.Contains(v.Data.Uses, d.Use) {
			v.Data.Uses = append(v.Data.Uses, d.Use)
		}
	}
	slices.Sort(v.Data.Uses)
	return v
}

// A Teacher is a model that a step trained the result on.
type Teacher struct {
	Side
	FileBytes  int64 `json:"file_bytes"`
	Parameters int64 `json:"parameters"`
	Parent     bool  `json:"parent"` // the student was derived from it: it is the source
}

func teachers(ctx context.Context, in Input, source Side) ([]Teacher, error) {
	var list []Teacher
	for _, m := range in.Teachers {
		t := Teacher{Side: side(m)}
		t.FileBytes = fileBytes(t.Side)
		t.Parent = t.sum() != "" && t.sum() == source.sum()
		var err error
		if t.Parameters, err = countParameters(ctx, m.IR); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// An origin is a row of the provenance: a file, samples or a document, with its digest.
type origin struct{ What, Name, Amount, SHA256 string }

// provenance lists what the result was made from, the result and the report.
func (r *Report) provenance() []origin {
	list := origins("Source", r.Source.Files)
	for _, t := range r.Teachers {
		list = append(list, origins("Teacher", t.Files)...)
	}
	list = append(list, origins("Result", r.Result.Files)...)
	for _, d := range r.Data {
		list = append(
			list,
			origin{
				usesOfData[d.Use],
				nameOfSamples(d.Name, d.Random, d.Seed),
				count(int64(d.Samples)) + " samples",
				d.SHA256,
			},
		)
		if d.Labels != nil {
			list = append(list, origin{"Labels", d.Labels.Name, "", d.Labels.SHA256})
		}
	}
	if b := r.Baseline; b != nil {
		list = append(list, origin{"Baseline", b.text(), "", b.Digest})
	}
	if v := r.Verification; v != nil && v.Data != nil {
		d := v.Data
		list = append(
			list,
			origin{
				"Verification data",
				nameOfSamples(d.Name, d.Generated, d.Seed),
				count(int64(d.Samples)) + " samples",
				d.SHA256,
			},
		)
		if d.Labels != nil {
			list = append(list, origin{"Labels", d.Labels.Name, "", d.Labels.SHA256})
		}
	}
	if r.Recipe != nil {
		list = append(list, origin{"Recipe", "", "", r.Recipe.SHA256})
	}
	return append(list, origin{"Report", r.Tool.Name + " " + r.Tool.Version, "", r.Digest})
}

// usesOfData are the names of rows by the use of data.
var usesOfData = map[string]string{
	"calibration": "Calibration data",
	"training":    "Training data",
	"validation":  "Validation data",
	"search":      "Data of --auto",
}

func origins(what string, files []File) []origin {
	var list []origin
	for _, f := range files {
		list = append(list, origin{what, f.Name, count(f.Bytes) + " bytes", f.SHA256})
	}
	return list
}

func nameOfSamples(name string, random bool, seed uint64) string {
	if random {
		return fmt.Sprintf("random inputs, seed %d", seed)
	}
	return name
}
