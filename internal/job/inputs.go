package job

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// recordInputs records the samples and the models that steps used besides the source.
func (r *run) recordInputs(ctx context.Context, used []pass.Data) error {
	if r.Search != nil {
		used = append([]pass.Data{r.Search.Data}, used...)
	}
	for _, d := range used {
		recorded := report.Data{Use: d.Use, Method: d.Method, Samples: d.Samples, Random: d.Path == "", Seed: d.Seed}
		if !recorded.Random {
			// A data set is identified by its files: a seed left in the options says nothing about it.
			recorded.Seed = 0
			in, err := r.recipeInput(ctx, d.Path)
			if err != nil {
				return err
			}
			recorded.Name, recorded.SHA256 = in.Name, in.SHA256
			if isFile(d.Labels) {
				if in, err = r.recipeInput(ctx, d.Labels); err != nil {
					return err
				}
				recorded.Labels = &in
			}
		}
		r.data = append(r.data, recorded)
	}
	for i, f := range r.others {
		// Two steps may open the same teacher.
		if slices.ContainsFunc(r.others[:i], func(g *onnx.File) bool { return g.Path == f.Path }) {
			continue
		}
		sums, err := startDigests(ctx, f, r.Digest, nil).wait()
		if err != nil {
			return err
		}
		m := report.Model{Files: files(f, sums), IR: f.Model, Metadata: f.Metadata()}
		r.teachers = append(r.teachers, m)
		if f.Path == r.referencePath() && !SameFile(f.Path, r.Input) {
			r.referenceModel = &referenceModel{f, m}
		}
	}
	return nil
}

// A referenceModel is a model that the result is compared with.
type referenceModel struct {
	file  *onnx.File
	model report.Model
}

// referencePath is the path of the model that the steps name for comparisons with their result; empty for the source.
func (r *run) referencePath() string {
	path := ""
	for _, s := range r.Steps {
		if o, ok := s.(pass.Referenced); ok {
			path = remote.Shown(o.Reference())
		}
	}
	return path
}

// recipeInput is the input of the recipe at path, which a search reads even where no step does.
func (r *run) recipeInput(ctx context.Context, path string) (report.RecipeInput, error) {
	in := report.RecipeInput{Name: portablePath(path)}
	i := slices.IndexFunc(r.recipe.Inputs, func(known report.RecipeInput) bool { return known.Name == in.Name })
	if i >= 0 {
		return r.recipe.Inputs[i], nil
	}
	var err error
	if r.Digest {
		in.SHA256, err = inputDigest(ctx, path)
	}
	return in, err
}
