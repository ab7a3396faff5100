package mcompress

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A Reproduction is the files that the recipe of a report makes of its source.
type Reproduction struct {
	Files     []report.File
	Different []report.File // of the report, that are not the same
}

// Identical reports whether all files are bit-identical to those of the report.
func (r *Reproduction) Identical() bool { return len(r.Different) == 0 }

// Reproduce runs the recipe of a report on the source at a path, and compares the result with the report. The files
// that the recipe reads are in the folders. A source or file that is not that of the report is an error with ExitGate.
// Nothing is kept; the result needs space in os.TempDir.
func Reproduce(ctx context.Context, r *report.Report, source string, folders []string,
	l Limits) (*Reproduction, error) {
	q := Request{Models: []string{source}, Limits: l}.Defaults()
	if err := q.Limits.check(); err != nil {
		return nil, err
	}
	o := job.Options{Input: source, Workers: q.Limits.Workers, Memory: q.Limits.recipes(), Limits: q.Limits.run(),
		Exclusive: true}
	if r.Recipe != nil {
		recipe, err := recipeOf(ctx, r.Recipe, folders)
		if err != nil {
			return nil, err
		}
		q.Target = recipe.Target
		t, err := q.target()
		if err != nil {
			return nil, err
		}
		o.Steps, o.Strip, o.KeepIR, o.DataFiles = recipe.Steps, recipe.StripMetadata, recipe.KeepIR, recipe.DataFiles
		if o.Target, err = t.Apply(recipe.Steps); err != nil {
			return nil, err
		}
	}
	files, err := job.Reproduce(ctx, r, o)
	if err != nil {
		return nil, err
	}
	return &Reproduction{files, job.Different(r.Result.Files, files)}, nil
}

// recipeOf is a recipe with the paths of its inputs, which are in the folders.
func recipeOf(ctx context.Context, recorded *report.Recipe, folders []string) (*pass.Recipe, error) {
	recipe, err := pass.ParseRecipe(Methods(), []byte(recorded.Text))
	if err != nil {
		return nil, fmt.Errorf("the recipe of the report: %w", err)
	}
	paths := map[string]string{}
	for _, in := range recorded.Inputs {
		if paths[in.Name], err = job.FindInput(ctx, in, folders); err != nil {
			return nil, err
		}
	}
	text, err := recipe.Text(func(name string) string {
		if path, ok := paths[name]; ok {
			return path
		}
		return name
	})
	if err != nil {
		return nil, err
	}
	return pass.ParseRecipe(Methods(), text)
}
