package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/distill"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// training is the flags of the commands that train.
type training struct {
	options *mcli.MethodOptions
	w       *requestFlags
	test    testSet
}

func newTraining(m *pass.Method) *training {
	tr := &training{options: &mcli.MethodOptions{Methods: []*pass.Method{m}}, w: newRequestFlags()}
	tr.w.options = tr.options
	return tr
}

// flags returns the flags of the command (own), the method and the output, in this order.
func (tr *training) flags(own []cli.Flag) []cli.Flag {
	return distinct(own, methodFlags(tr.options.Offers(), nil), tr.test.flags(), tr.w.profile.flags(), tr.w.flags())
}

// verifyTrained sets the samples for verification of a step that trains, with the given options: those of the test set, else the first
// training samples.
func (w *requestFlags) verifyTrained(options *mcli.MethodOptions, test testSet) error {
	if !options.IsGiven("data") {
		return usagef("--data is missing: training samples")
	}
	for _, o := range options.Given() {
		switch {
		case o.Name == "metric" && o.Value != distill.Agreement:
			w.samples.metric = o.Value
		case o.Name == "scores":
			w.samples.scores, _, _ = strings.Cut(o.Value, ",")
		}
	}
	s := &w.samples.sampling
	if err := s.adopt(options.Given(), test); err != nil {
		return err
	}
	if test.path == "" && s.limit == 0 {
		s.limit = mostVerified
	}
	s.size = 16
	return nil
}

// mostVerified is the maximum number of training samples used for verification.
const mostVerified = 512

func finetuneCommand(t *tool) *cli.Command {
	tr := newTraining(distill.FineTune{}.Method())
	return &cli.Command{
		Name:      "finetune",
		Usage:     "fine-tune a model to recover accuracy after compression",
		ArgsUsage: "MODEL...",
		Description: `Trains on the labels of the data, or on the outputs of --teacher if there are none. Pruned weights
stay zero. --qat "weight-int4 block=64" does quantization-aware training (QAT) for that method and its options, and
then quantizes the result with it.`,
		Flags: append(tr.flags(nil), tr.w.list.flags()...),
		Action: func(c *cli.Context) error {
			models, err := tr.w.list.models(c, c.Args().Slice())
			if err != nil {
				return err
			}
			step, err := tr.step(distill.FineTune{}.Method())
			if err != nil {
				return err
			}
			return tr.run(c, t, models, "finetune", []pass.Options{step})
		},
	}
}

func distillCommand(t *tool) *cli.Command {
	tr := newTraining(distill.Distill{}.Method())
	var student string
	derive := mcli.Enum{Value: "channel", Words: []string{"channel", "lowrank", "layers"}}
	amount, stages := "0.5", false
	own := group("flags", func(fs *flag.FlagSet) {
		fs.StringVar(&student, "student", "", "`path` of the student (default: one is derived from the teacher)")
		fs.Var(&derive, "derive", "`method` that derives a student from the teacher: channel (fewer channels), lowrank (low-rank factors), layers (fewer layers)")
		fs.StringVar(&amount, "amount", "0.5", "`fraction` of channels, parameters or layers removed in a derived student")
		fs.BoolVar(&stages, "stages", false, "train in two stages, each with --epochs, --steps or --time: on intermediate values alone, as --loss none does, then on the outputs alone")
	})
	return &cli.Command{
		Name:      "distill",
		Usage:     "train a small student from a large teacher (knowledge distillation)",
		ArgsUsage: "",
		Description: `Writes the trained student. Labels are optional; --alpha is their weight against the teacher's outputs. Without
--student, the student is derived from the teacher and starts from its weights.`,
		Flags: tr.flags(own),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			step, err := tr.step(distill.Distill{}.Method())
			if err != nil {
				return err
			}
			i := slices.IndexFunc(tr.options.Given(), func(o pass.Option) bool { return o.Name == "teacher" })
			if i < 0 {
				return usagef("--teacher is missing: the teacher model")
			}
			steps := []pass.Options{step}
			if stages {
				steps = distill.Stages(*step.(*distill.Distill))
			}
			if student != "" {
				return tr.run(c, t, []string{student}, "distill", steps)
			}
			derived, err := derivation(derive.Value, amount)
			if err != nil {
				return &usageError{err}
			}
			return tr.run(c, t, []string{step.(pass.Referenced).Reference()}, "distill", append([]pass.Options{derived}, steps...))
		},
	}
}

// derivation returns the step that derives a student from its teacher.
func derivation(method, amount string) (pass.Options, error) {
	for _, m := range offered("prune") {
		if m.Name == method {
			return pass.NewStep(m, func(fs *flag.FlagSet) error { return fs.Set("amount", amount) })
		}
	}
	return nil, usagef("--derive %s: unknown method", method)
}

// run runs the steps, then the quantization step of --qat.
func (tr *training) run(c *cli.Context, t *tool, models []string, label string, steps []pass.Options) error {
	if err := tr.w.profile.check(models); err != nil {
		return err
	}
	if err := tr.w.verifyTrained(tr.options, tr.test); err != nil {
		return err
	}
	before, after, err := tr.quantization()
	if err != nil {
		return err
	}
	tr.w.Label, tr.w.Steps = label, slices.Concat(before, steps, after)
	return tr.w.run(c, t, models)
}

// qat returns the method of --qat and its options.
func (tr *training) qat() (method string, options []string) {
	for _, o := range tr.options.Given() {
		if words := strings.Fields(o.Value); o.Name == "qat" && len(words) > 0 {
			method, options = words[0], words[1:]
		}
	}
	return method, options
}

// step returns the training step with the given options. The method of --qat is a separate step.
func (tr *training) step(m *pass.Method) (pass.Options, error) {
	step, err := pass.NewStep(m, func(fs *flag.FlagSet) error {
		method, _ := tr.qat()
		return errors.Join(tr.options.Fill(fs, "qat"), fs.Set("qat", method))
	})
	if err != nil {
		return step, &usageError{err}
	}
	return step, nil
}

// quantization returns the quantization step of --qat, and the steps required before training.
func (tr *training) quantization() (before, after []pass.Options, err error) {
	method, options := tr.qat()
	if method == "" {
		return nil, nil, nil
	}
	known := slices.DeleteFunc(offered("quantize"), func(m *pass.Method) bool { return m.Stage != pass.Quantize })
	i := slices.Index(names(known), method)
	if i < 0 {
		return nil, nil, usagef("--qat %s: unknown method; use one of %s", method, mcli.And(names(known)))
	}
	step, err := pass.NewStep(known[i], func(fs *flag.FlagSet) error { return tr.fill(fs, options) })
	if err != nil {
		return nil, nil, usagef("--qat: %v", err)
	}
	if known[i] == (quantize.StaticInt8{}).Method() { // static-int8 folds BatchNormalization, which QAT does not support
		before = []pass.Options{quantize.FoldBatchNorm{}}
	}
	return before, []pass.Options{step}, nil
}

// fill sets the options of the quantization method of --qat: its calibration data is the training data, and bias correction is off because
// QAT trains the biases.
func (tr *training) fill(fs *flag.FlagSet, options []string) error {
	for _, o := range tr.options.Given() {
		if tr.w.samples.sampling.shares(o.Name) && o.Name != "limit" && fs.Lookup(o.Name) != nil {
			if err := fs.Set(o.Name, o.Value); err != nil {
				return fmt.Errorf("option %q: %w", o.Name, err)
			}
		}
	}
	if fs.Lookup("no-bias-correction") != nil {
		options = append([]string{"no-bias-correction"}, options...)
	}
	return pass.Assignments(options)(fs)
}
