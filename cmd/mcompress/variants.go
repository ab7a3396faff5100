package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/atomicfile"
	mcli "github.com/mcompress/mcompress/internal/cli"
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

// variants are the dtypes of transformers.js with the suffixes of its table DEFAULT_DTYPE_SUFFIX_MAPPING (src/utils/dtypes.js). The names are about
// the form of weights: fp16 computes in half precision, and q4 is blocks of 32 for MatMulNBits. bnb4 is left out: NF4 needs an operator
// that onnxruntime-web does not have. q1 is left out: there is no such method.
var variants = []variant{
	{dtype: "fp16", suffix: "_fp16", steps: []string{"float16:compute=float16"}},
	{dtype: "q8", suffix: "_quantized", steps: []string{"dynamic-int8:embeddings"}, other: []string{"weight-int8"}},
	{dtype: "int8", suffix: "_int8", steps: []string{"dynamic-int8:embeddings"}, other: []string{"weight-int8"}},
	{dtype: "uint8", suffix: "_uint8", steps: []string{"dynamic-int8:embeddings:weight-type=uint8"}, other: []string{"weight-int8:weight-type=uint8"}},
	{dtype: "q4", suffix: "_q4", steps: []string{"weight-int4:form=matmulnbits"}},
	{dtype: "q4f16", suffix: "_q4f16", steps: []string{"float16:compute=float16", "weight-int4:form=matmulnbits"}},
	{dtype: "q2", suffix: "_q2", steps: []string{"weight-int2:form=matmulnbits"}},
	{dtype: "q2f16", suffix: "_q2f16", steps: []string{"float16:compute=float16", "weight-int2:form=matmulnbits"}},
}

// sessions are the names of models that transformers.js loads (src/models/session_config.js); of a model with another name it loads nothing, so
// that it becomes model.onnx.
var sessions = []string{
	"audio_encoder", "conditional_decoder", "decoder_model", "decoder_model_merged", "embed_tokens", "encodec_decode", "encoder_model", "gen_head",
	"gen_img_embeds", "image_decode", "language_model", "latent_denoiser", "lm_head", "model", "prepare_inputs_embeds", "prompt_encoder_mask_decoder",
	"speech_encoder", "text_encoder", "text_model", "vision_encoder", "vision_model", "voice_decoder",
}

// variantSet is the flag --variants: dtypes of transformers.js.
type variantSet struct{ chosen []variant }

func (s *variantSet) flags() []cli.Flag {
	return group("variants", func(fs *flag.FlagSet) {
		fs.Var(s, "variants", "comma-separated `dtypes` of transformers.js: fp16, q8, int8 (also q8), uint8, q4, q4f16, q2, q2f16; writes onnx/model.onnx, the source, and a file for each dtype, such as onnx/model_q4.onnx, into the folder of --output, or with a model card into that of --push hf:DIR")
	})
}

// String is the dtypes.
func (s *variantSet) String() string {
	var words []string
	for _, v := range s.chosen {
		words = append(words, v.dtype)
	}
	return strings.Join(words, ",")
}

// Choices returns the values for completion.
func (s *variantSet) Choices() []string {
	var words []string
	for _, v := range variants {
		words = append(words, v.dtype)
	}
	return words
}

// Set accepts dtypes. int8 is q8, too: the default of transformers.js on WebAssembly.
func (s *variantSet) Set(text string) error {
	want := map[string]bool{}
	for word := range strings.SplitSeq(text, ",") {
		if !slices.Contains(s.Choices(), word) {
			return fmt.Errorf("there are %s", mcli.And(s.Choices()))
		}
		want[word] = true
		want["q8"] = want["q8"] || word == "int8"
	}
	s.chosen = slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return !want[v.dtype] })
	return nil
}

// run writes the variants of each model, and one table about them.
func (s *variantSet) run(c *cli.Context, t *tool, o *mcli.MethodOptions, models []string, w *writing, test testSet) (err error) {
	if err := errors.Join(s.check(o), onlyFiles("--variants", models), t.undivided("--variants")); err != nil {
		return err
	}
	given := w.output
	done, err := s.destination(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	card, err := w.documents()
	if err != nil {
		return err
	}
	outs, err := s.outputs(models, w.output)
	if err != nil {
		return err
	}
	if err := w.proving.adopt(o.Given(), test); err != nil {
		return err
	}
	settings, err := w.verification(t)
	if err != nil {
		return err
	}
	if w.baseline, err = w.against.load(c.Context, t, c.Command.Name, &w.pushing.registryFlags, w.gates); err != nil {
		return err
	}
	if !w.dryRun {
		undo, err := atomicfile.MakeDir(filepath.Dir(outs[0]))
		if err != nil {
			return err
		}
		defer undo()
	}
	to := filepath.Dir(outs[0])
	if given == "" {
		to = w.pushing.dest
	}
	w.card.warn(t, c.Command.Name, w.pushing.dest)
	w.mustChange, w.dataSuffix = true, "_data"
	var all mcli.Batch
	for i, m := range models {
		batch, err := s.compress(c, t, o, w, m, outs[i], settings)
		if err != nil && (len(models) == 1 || c.Context.Err() != nil) {
			return err
		}
		if err != nil {
			all = append(all, mcli.Outcome{Model: m, Variant: sourceVariant, Err: err})
			continue
		}
		if !w.dryRun {
			if err := s.configure(w, m, outs[i], batch); err != nil {
				return err
			}
		}
		all = append(all, batch...)
	}
	for _, outcome := range all {
		if outcome.Err != nil {
			printError(t.stderr, fmt.Errorf("%s: %s: %w", c.Command.Name, outcome.Variant, outcome.Err))
		}
	}
	code, err := w.concludeVariants(t, all, to)
	if err != nil {
		return err
	}
	pushed := w.pushing.dest != "" && (code == exitDone || code == exitInput && slices.ContainsFunc(all, made))
	switch {
	case pushed:
		err = s.push(c.Context, t, w, card, outs, all)
	case w.pushing.dest != "" && to == w.pushing.dest:
		printError(t.stderr, fmt.Errorf("%s: nothing is pushed, and the results are dropped; --output keeps them", c.Command.Name))
	}
	if err != nil {
		return err
	}
	return ended([]int{code})
}

// made reports whether a variant was written.
func made(o mcli.Outcome) bool { return o.Err == nil && o.Variant != sourceVariant }

// destination sets the folder of the variants: that of --output, or with --push alone a temporary one, which done removes.
func (s *variantSet) destination(w *writing) (done func() error, err error) {
	done = func() error { return nil }
	if w.pushing.dest == "" {
		if w.output == "" {
			return nil, usagef("--variants requires --output with the path of a folder, or --push hf:DIR")
		}
		return done, nil
	}
	ref, err := parseReference(w.pushing.dest)
	switch {
	case err != nil:
		return nil, err
	case ref.Scheme != "hf":
		return nil, usagef("--variants with --push requires hf:DIR, not %s", ref)
	case w.dryRun:
		return nil, usagef("--push and --dry-run exclude each other")
	case w.reportDir != "":
		return nil, usagef("--variants with --push and --report-dir exclude each other")
	case w.output != "":
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
	w.output = filepath.Join(temporary.Path, "models")
	return func() error {
		defer undo()
		return temporary.Close()
	}, nil
}

// push writes the folder for the Hugging Face Hub.
func (s *variantSet) push(ctx context.Context, t *tool, w *writing, card report.Card, sources []string, batch mcli.Batch) error {
	ref, err := parseReference(w.pushing.dest)
	if err != nil {
		return err
	}
	card.Library = "transformers.js"
	var made []string
	for _, o := range batch {
		if o.Err == nil && o.Variant != sourceVariant {
			made = append(made, o.Result.Output)
			card.DTypes = append(card.DTypes, o.Variant)
		}
	}
	o, stop := w.pushing.options(t, "quantize", ref)
	o.Card = card
	pushed, err := registry.PushVariants(ctx, ref, w.output, sources, made, o)
	stop()
	if err != nil {
		return err
	}
	if t.json {
		return mcli.Pushed(t.stderr, mcli.Style{}, filepath.Base(sources[0]), pushed)
	}
	return mcli.Pushed(t.stdout, t.style(), filepath.Base(sources[0]), pushed)
}

// sourceVariant is the dtype of the source.
const sourceVariant = "fp32"

// check refuses options that no method of the variants has.
func (s *variantSet) check(o *mcli.MethodOptions) error {
	for _, g := range o.Given() {
		has := func(word string) bool {
			c, err := parseCandidate(word, o)
			return err == nil && pass.Flags(c.method).Lookup(g.Name) != nil
		}
		known := slices.ContainsFunc(s.chosen, func(v variant) bool { return slices.ContainsFunc(slices.Concat(v.steps, v.other), has) })
		if !known && !o.Shared(g.Name) {
			return usagef("--%s is not an option of the variants %s", g.Name, s)
		}
	}
	return nil
}

// outputs are the paths of the copies of the models, whose names are known to transformers.js.
func (s *variantSet) outputs(models []string, dir string) ([]string, error) {
	outs := make([]string, len(models))
	for i, m := range models {
		name := report.Stem(filepath.Base(m))
		if len(models) == 1 && !slices.Contains(sessions, name) {
			name = "model"
		}
		outs[i] = filepath.Join(dir, "onnx", name+".onnx")
		if j := slices.Index(outs[:i], outs[i]); j >= 0 {
			return nil, usagef("%s and %s would both become %s", models[j], m, outs[i])
		}
	}
	return outs, nil
}

// compress copies a model and writes its variants. Errors of a variant are in its outcome, except for the end of ctx.
func (s *variantSet) compress(c *cli.Context, t *tool, o *mcli.MethodOptions, w *writing, model, out string, settings *job.Verification) (mcli.Batch, error) {
	ctx := c.Context
	source, err := w.copySource(ctx, t, model, out)
	if err != nil {
		return nil, err
	}
	batch := mcli.Batch{{Model: model, Variant: sourceVariant, Result: source}}
	for _, v := range s.chosen {
		path := report.Stem(out) + v.suffix + ".onnx"
		steps, err := s.steps(ctx, t, v, o, w, model, path)
		var res *job.Result
		if err == nil {
			res, err = w.compressed(c, t, listed{model: model, output: path}, v.dtype, steps, settings)
		}
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if res != nil && res.NotRun != "" {
			t.warnNotRun("quantize", res.Output, res.NotRun)
		}
		batch = append(batch, mcli.Outcome{Model: model, Variant: v.dtype, Result: res, Err: err})
	}
	return batch, nil
}

// copySource copies a model to the folder of its variants. A model that is there is left alone.
func (w *writing) copySource(ctx context.Context, t *tool, model, out string) (*job.Result, error) {
	o, err := w.job(ctx, t, model, out, nil)
	if err != nil {
		return nil, err
	}
	o.MustChange, o.Gates, o.Reports, o.Errors, o.Target = false, nil, nil, false, nil
	there := job.SameFile(model, out)
	if there {
		o.DryRun, o.Output = true, ""
	}
	res, err := job.Run(ctx, o)
	if err == nil && there {
		res.Report.Result.Files = res.Report.Source.Files
	}
	return res, err
}

// steps are those of a variant, or the other ones where these compress little of the model.
func (s *variantSet) steps(ctx context.Context, t *tool, v variant, o *mcli.MethodOptions, w *writing, model, out string) ([]pass.Options, error) {
	steps, err := w.variantSteps(v.steps, o)
	if err != nil || v.other == nil {
		return steps, err
	}
	trial, err := w.job(ctx, t, model, out, steps)
	if err != nil {
		return nil, err
	}
	trial.DryRun, trial.Digest, trial.Gates, trial.Errors, trial.Reports, trial.MustChange = true, false, nil, false, nil, false
	res, err := job.Run(ctx, trial)
	if err != nil || !mcli.NeedsAlternative(res.Report) {
		return steps, err
	}
	return w.variantSteps(v.other, o)
}

// variantSteps are the steps of candidates, with the given options that their methods have. With a target, forms of weights are chosen for that.
func (w *writing) variantSteps(words []string, o *mcli.MethodOptions) ([]pass.Options, error) {
	target, err := w.target.target()
	if err != nil {
		return nil, err
	}
	var steps []pass.Options
	for _, word := range words {
		c, err := parseCandidate(word, o)
		if err != nil {
			return nil, err
		}
		c.options = slices.DeleteFunc(c.options, func(own pass.Option) bool {
			given := slices.ContainsFunc(o.Given(), func(g pass.Option) bool { return g.Name == own.Name })
			return given || own.Name == "form" && target != nil
		})
		step, err := pass.NewStep(c.method, func(fs *flag.FlagSet) error { return errors.Join(o.Fill(fs), set(fs, c.options)) })
		if err != nil {
			return nil, &usageError{err}
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// configure copies the files next to the model, or to the folder that the model's folder "onnx" is in, and lists files with external data in
// config.json, without which transformers.js does not load them.
func (s *variantSet) configure(w *writing, model, out string, batch mcli.Batch) (err error) {
	root := filepath.Dir(filepath.Dir(out))
	access, err := atomicfile.Like(model)
	if err != nil {
		return err
	}
	from, err := folder.OfTransformers(model, root)
	if err != nil {
		return err
	}
	set := &atomicfile.Set{Sync: !w.noSync}
	defer func() { err = errors.Join(err, set.Close()) }()
	if from != nil {
		if set.Access, err = atomicfile.Like(append(from.Paths(), model)...); err != nil {
			return err
		}
		if err := from.Write(set, nil, nil); err != nil {
			return err
		}
	}
	if err := set.Publish(""); err != nil {
		return err
	}
	var external []string
	for _, o := range batch {
		if o.Err == nil && len(o.Result.Report.Result.Files) > 1 {
			external = append(external, o.Result.Report.Result.Files[0].Name)
		}
	}
	return folder.NameExternalData(root, external, access)
}

// concludeVariants prints the table of the variants and returns their exit code: that of a variant that is missing, even if there are others.
func (w *writing) concludeVariants(t *tool, batch mcli.Batch, to string) (code int, err error) {
	print := batch.VariantsText
	if t.json {
		print = batch.VariantsJSON
	}
	if w.dryRun {
		to = "(dry run, no file written)"
	}
	if err := print(t.stdout, t.style(), to); err != nil {
		return exitIO, err
	}
	var codes []int
	for _, o := range batch {
		codes = append(codes, outcomeCode(o))
	}
	return first(codes), nil
}
