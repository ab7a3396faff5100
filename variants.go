package mcompress

import (
	"context"
	"errors"
	"flag"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/folder"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// A variant is a file that transformers.js loads for a dtype.
type variant struct {
	dtype  string
	suffix string   // of the name of the source
	steps  []string // candidates, in their order
	other  []string // for models of which steps compress little; nil for none
}

// variants are the dtypes of transformers.js with the suffixes of its table DEFAULT_DTYPE_SUFFIX_MAPPING
// (src/utils/dtypes.js). The names are about the form of weights: fp16 computes in half precision, and q4 is blocks of
// 32 for MatMulNBits. bnb4 is left out: NF4 needs an operator that onnxruntime-web does not have. q1 is left out: there
// is no such method.
var variants = []variant{
	{dtype: "fp16", suffix: "_fp16", steps: []string{"float16:compute=float16"}},
	{dtype: "q8", suffix: "_quantized", steps: []string{"dynamic-int8:embeddings"}, other: []string{"weight-int8"}},
	{dtype: "int8", suffix: "_int8", steps: []string{"dynamic-int8:embeddings"}, other: []string{"weight-int8"}},
	{dtype: "uint8", suffix: "_uint8", steps: []string{"dynamic-int8:embeddings:weight-type=uint8"},
		other: []string{"weight-int8:weight-type=uint8"}},
	{dtype: "q4", suffix: "_q4", steps: []string{"weight-int4:form=matmulnbits"}},
	{dtype: "q4f16", suffix: "_q4f16", steps: []string{"float16:compute=float16", "weight-int4:form=matmulnbits"}},
	{dtype: "q2", suffix: "_q2", steps: []string{"weight-int2:form=matmulnbits"}},
	{dtype: "q2f16", suffix: "_q2f16", steps: []string{"float16:compute=float16", "weight-int2:form=matmulnbits"}},
}

// sessions are the names of models that transformers.js loads (src/models/session_config.js); of a model with another
// name it loads nothing, so that it becomes model.onnx.
var sessions = []string{
	"audio_encoder", "conditional_decoder", "decoder_model", "decoder_model_merged", "embed_tokens", "encodec_decode",
	"encoder_model", "gen_head", "gen_img_embeds", "image_decode", "language_model", "latent_denoiser", "lm_head", "model",
	"prepare_inputs_embeds", "prompt_encoder_mask_decoder", "speech_encoder", "text_encoder", "text_model",
	"vision_encoder", "vision_model", "voice_decoder",
}

// VariantNames are the dtypes of Variants.
func VariantNames() []string {
	var names []string
	for _, v := range variants {
		names = append(names, v.dtype)
	}
	return names
}

// SourceVariant is the dtype of the copy of the source.
const SourceVariant = "fp32"

// chosen are the variants of the dtypes. int8 is q8, too: the default of transformers.js on WebAssembly.
func (s *Variants) chosen() ([]variant, error) {
	want := map[string]bool{}
	for _, name := range s.DTypes {
		if !slices.Contains(VariantNames(), name) {
			return nil, fieldErrorf("{Variants.DTypes}: there are %s", strings.Join(VariantNames(), ", "))
		}
		want[name] = true
		want["q8"] = want["q8"] || name == "int8"
	}
	return slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return !want[v.dtype] }), nil
}

// checkVariants is an error for fields that variants exclude, and for options that no method of the variants has.
func (x *run) checkVariants(chosen []variant) error {
	for _, f := range []struct {
		field string
		given bool
	}{
		{"Steps", x.Steps != nil}, {"Search", x.Search != nil}, {"ExportDir", x.ExportDir != ""}, {"List", x.List != List{}},
	} {
		if f.given {
			return fieldErrorf("{Variants} and {%s} exclude each other", f.field)
		}
	}
	if x.division != nil {
		return fieldErrorf("a plan has no {Variants}")
	}
	for _, g := range x.Variants.Options {
		has := func(word string) bool {
			c, err := parseCandidate(word)
			return err == nil && pass.Flags(c.method).Lookup(g.Name) != nil
		}
		ofMethods := slices.ContainsFunc(chosen, func(v variant) bool {
			return slices.ContainsFunc(slices.Concat(v.steps, v.other), has)
		})
		if !ofMethods && !ofData(g.Name) {
			return fieldErrorf("--%s is not an option of the variants %s", g.Name, strings.Join(x.Variants.DTypes, ","))
		}
	}
	return onlyFiles("Variants", x.Models)
}

// ofData reports whether an option is one of samples, which verification reads, too.
func ofData(name string) bool {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	pass.Declare(fs, &Data{})
	return fs.Lookup(name) != nil || name == "batch" || name == "seed"
}

// variants writes the variants of each model. Where one is missing, nothing else is: its outcome has the error.
func (x *run) variants(ctx context.Context) (all []Outcome, err error) {
	chosen, err := x.Variants.chosen()
	if err != nil {
		return nil, err
	}
	if err := x.checkVariants(chosen); err != nil {
		return nil, err
	}
	// Before the names of results, which are in it.
	done, err := x.variantFolder()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	outs, err := x.variantOutputs()
	if err != nil {
		return nil, err
	}
	if err := x.prepare(ctx); err != nil {
		return nil, err
	}
	if !x.DryRun {
		undo, err := atomicfile.MakeDir(filepath.Dir(outs[0]))
		if err != nil {
			return nil, err
		}
		defer undo()
	}
	x.warnCard()
	// transformers.js finds external data by this suffix, and a variant without a changed weight would be the source
	// again.
	x.mustChange, x.dataSuffix = true, "_data"
	for i, m := range x.Models {
		outcomes, err := x.variantsOf(ctx, chosen, m, outs[i])
		if err != nil && ctx.Err() != nil {
			return all, err
		}
		if err != nil {
			outcomes = []Outcome{{Model: m, Variant: SourceVariant, Err: err}}
		} else if !x.DryRun {
			if err := x.configure(m, outs[i], outcomes); err != nil {
				return all, err
			}
		}
		all = append(all, outcomes...)
		if x.Events.Outcome != nil {
			for _, o := range outcomes {
				if err := x.Events.Outcome(o); err != nil {
					return all, err
				}
			}
		}
	}
	if x.Push == "" || !pushable(all) {
		return all, nil
	}
	if all[0].Pushed, err = x.pushVariants(ctx, outs, all); err != nil {
		return all, &ConclusionError{err}
	}
	return all, nil
}

// pushable reports whether variants are pushed: all keep their gates, and some were written, even if others could not
// be.
func pushable(all []Outcome) bool {
	written := false
	for _, o := range all {
		if code := ExitCode(o.Error()); code != ExitDone && code != ExitInput {
			return false
		}
		written = written || o.written()
	}
	return written
}

// written reports whether a variant was written.
func (o Outcome) written() bool { return o.Err == nil && o.Variant != SourceVariant }

// variantFolder sets the folder of the variants: Output, or with Push alone a temporary one, which done removes.
func (x *run) variantFolder() (done func() error, err error) {
	done = func() error { return nil }
	if x.Push == "" {
		if x.Output == "" {
			return nil, fieldErrorf("{Variants} requires {Output} with the path of a folder, or {Push} hf:DIR")
		}
		return done, nil
	}
	ref, err := registry.Parse(x.Push)
	switch {
	case err != nil:
		return nil, err
	case ref.Scheme != "hf":
		return nil, fieldErrorf("{Variants} with {Push} requires hf:DIR, not %s", ref)
	case x.Reports.Dir != "":
		return nil, fieldErrorf("{Variants} with {Push} and {Reports.Dir} exclude each other")
	case x.Output != "":
		return done, nil
	}
	parent := filepath.Dir(filepath.Clean(ref.Name))
	undo, err := atomicfile.MakeDir(parent)
	if err != nil {
		return nil, err
	}
	temporary, err := atomicfile.NewFolder(parent)
	if err != nil {
		undo()
		return nil, err
	}
	x.Output = filepath.Join(temporary.Path, "models")
	return func() error {
		defer undo()
		return temporary.Close()
	}, nil
}

// pushVariants writes the folder for the Hugging Face Hub.
func (x *run) pushVariants(ctx context.Context, sources []string, all []Outcome) (*registry.Pushed, error) {
	ref, err := registry.Parse(x.Push)
	if err != nil {
		return nil, err
	}
	o := x.Registry.options()
	o.Card = x.card
	o.Card.Library = "transformers.js"
	var written []string
	for _, outcome := range all {
		if outcome.written() {
			written = append(written, outcome.Result.Output)
			o.Card.DTypes = append(o.Card.DTypes, outcome.Variant)
		}
	}
	x.Registry.warnInsecure(ref, x.Events)
	var end func()
	o.Progress, end = x.Events.stage(ref.Name, StageTransfer)
	defer end()
	return registry.PushVariants(ctx, ref, x.Output, sources, written, o)
}

// VariantFolder is the folder of the files of variants in an output.
func VariantFolder(output string) string { return filepath.Join(output, "onnx") }

// variantOutputs are the paths of the copies of the models, whose names are known to transformers.js.
func (x *run) variantOutputs() ([]string, error) {
	outs := make([]string, len(x.Models))
	for i, m := range x.Models {
		name := report.Stem(filepath.Base(m))
		if len(x.Models) == 1 && !slices.Contains(sessions, name) {
			name = "model"
		}
		outs[i] = filepath.Join(VariantFolder(x.Output), name+".onnx")
		if j := slices.Index(outs[:i], outs[i]); j >= 0 {
			return nil, fieldErrorf("%s and %s would both become %s", x.Models[j], m, outs[i])
		}
	}
	return outs, nil
}

// variantsOf copies a model and writes its variants. Errors of a variant are in its outcome, except for the end of ctx.
func (x *run) variantsOf(ctx context.Context, chosen []variant, model, out string) ([]Outcome, error) {
	// Without the source there are no variants.
	source, err := x.copySource(ctx, model, out)
	if err != nil {
		return nil, err
	}
	all := []Outcome{{Model: model, Variant: SourceVariant, Result: source}}
	for _, v := range chosen {
		path := report.Stem(out) + v.suffix + ".onnx"
		o := Outcome{Model: model, Variant: v.dtype}
		steps, err := x.stepsOf(ctx, v, model, path)
		if err == nil {
			of := *x
			of.Label = v.dtype
			o.Result, err = of.compressed(ctx, listed{model: model, output: path}, steps)
		}
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		o.Err = err
		if o.Result != nil && o.Result.NotRun != "" {
			x.Events.warnText(o.Result.Output + " was not run: " + o.Result.NotRun)
		}
		all = append(all, o)
	}
	return all, nil
}

// copySource copies a model to the folder of its variants. A model that is there is left alone.
func (x *run) copySource(ctx context.Context, model, out string) (*Result, error) {
	o, err := x.job(ctx, model, out, nil)
	if err != nil {
		return nil, err
	}
	o.MustChange, o.Gates, o.Reports, o.Errors, o.Target = false, nil, nil, false, nil
	there := job.SameFile(model, out)
	// Only its report is needed: reading it in place must not replace it.
	if there {
		o.DryRun, o.Output = true, ""
	}
	res, err := job.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	if there {
		res.Report.Result.Files = res.Report.Source.Files
	}
	return resultOf(res, nil), nil
}

// stepsOf are those of a variant, or the other ones where these compress little of the model.
func (x *run) stepsOf(ctx context.Context, v variant, model, out string) ([]pass.Options, error) {
	steps, err := x.candidateSteps(v.steps)
	if err != nil || v.other == nil {
		return steps, err
	}
	// A dry run shows how much the method would skip.
	trial, err := x.trial(ctx, model, out, steps)
	if err != nil || !needsAlternative(trial) {
		return steps, nil // an error is that of the run
	}
	return x.candidateSteps(v.other)
}

// candidateSteps are the steps of candidates, with the given options that their methods have. With a target, forms of
// weights are chosen for that.
func (x *run) candidateSteps(words []string) ([]pass.Options, error) {
	target, err := x.target()
	if err != nil {
		return nil, err
	}
	given := x.Variants.Options
	var steps []pass.Options
	for _, word := range words {
		c, err := parseCandidate(word)
		if err != nil {
			return nil, err
		}
		c.options = slices.DeleteFunc(c.options, func(own pass.Option) bool {
			other := slices.ContainsFunc(given, func(g pass.Option) bool { return g.Name == own.Name })
			// Options that were given replace those of the variant, and a target chooses forms itself.
			return other || own.Name == "form" && target != nil
		})
		step, err := pass.NewStep(c.method, func(fs *flag.FlagSet) error {
			return errors.Join(fill(fs, given), set(fs, c.options))
		})
		if err != nil {
			return nil, fieldErrorf("%w", err)
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// configure copies the files next to the model, or to the folder that the model's folder "onnx" is in, and lists files
// with external data in config.json, without which transformers.js does not load them.
func (x *run) configure(model, out string, outcomes []Outcome) (err error) {
	root := filepath.Dir(filepath.Dir(out))
	access, err := atomicfile.Like(model)
	if err != nil {
		return err
	}
	from, err := folder.OfTransformers(model, root)
	if err != nil {
		return err
	}
	set := &atomicfile.Set{Sync: !x.NoSync}
	defer func() { err = errors.Join(err, set.Close()) }()
	if from != nil {
		if set.Access, err = atomicfile.Like(append(from.Paths(), model)...); err != nil {
			return err
		}
		if err := from.Write(set, nil, nil); err != nil {
			return err
		}
	}
	// Before config.json is edited, which may be among the copied files.
	if err := set.Publish(""); err != nil {
		return err
	}
	var external []string
	for _, o := range outcomes {
		if o.Err == nil && len(o.Result.Report.Result.Files) > 1 {
			external = append(external, o.Result.Report.Result.Files[0].Name)
		}
	}
	return folder.NameExternalData(root, external, access)
}
