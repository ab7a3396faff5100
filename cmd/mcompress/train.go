package main

import (
	"flag"
	"math"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/distill"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
)

// training is what commands that train have in common.
type training struct {
	options *mcli.MethodOptions
	w       *writing
	test    string
}

func newTraining(m *pass.Method) *training {
	return &training{options: &mcli.MethodOptions{Methods: []*pass.Method{m}}, w: newWriting()}
}

// flags are those of the method, of the command and of writing; own comes first.
func (tr *training) flags(own []cli.Flag) []cli.Flag {
	return distinct(own, methodFlags(tr.options, nil), testFlag(&tr.test), tr.w.flags())
}

// verifyOn lets the result be verified on the samples of --test, or on those that it learned from.
func (tr *training) verifyOn() error {
	if !slices.ContainsFunc(tr.options.Given(), func(o pass.Option) bool { return o.Name == "data" }) {
		return usagef("--data is missing: the samples to learn from")
	}
	s := &tr.w.proving.sampling
	if err := s.adopt(tr.options.Given(), tr.test); err != nil {
		return err
	}
	if tr.test == "" && s.limit == 0 {
		s.limit = mostVerified
	}
	s.size = 16
	return nil
}

// mostVerified is how many samples a result is verified on that it learned from.
const mostVerified = 512

func (t *tool) finetuneCommand() *cli.Command {
	tr := newTraining(distill.FineTune)
	return &cli.Command{
		Name:      "finetune",
		Usage:     "train a model on, so that accuracy that was lost comes back",
		ArgsUsage: "MODEL...",
		Description: `Learns from the labels of the data, or from --teacher where there are none. Weights that were pruned
stay zero. With --aware dynamic-int8 training rounds as that method will, and the result is quantized by it.`,
		Flags: tr.flags(nil),
		Action: func(c *cli.Context) error {
			models, err := arguments(c, 1, math.MaxInt)
			if err != nil {
				return err
			}
			step, err := tr.options.Step(distill.FineTune.Name)
			if err != nil {
				return &usageError{err}
			}
			return t.train(c, tr, models, "finetune", []pass.Step{step})
		},
	}
}

func (t *tool) distillCommand() *cli.Command {
	tr := newTraining(distill.Distill)
	var student string
	derive := mcli.Enum{Value: "channel", Words: []string{"channel", "lowrank", "blocks"}}
	amount := "0.5"
	own := group("flags", func(fs *flag.FlagSet) {
		fs.StringVar(&student, "student", "", "`path` of the student (default: one is derived from the teacher)")
		fs.Var(&derive, "derive", "`how` a student is made of the teacher: channel (narrower), lowrank (thinner), blocks (shallower)")
		fs.StringVar(&amount, "amount", "0.5", "`share` of channels, of parameters, or of blocks that a derived student leaves out")
	})
	return &cli.Command{
		Name:      "distill",
		Usage:     "train a small model to say what a large one says",
		ArgsUsage: "",
		Description: `Writes the trained student. Labels are not needed; --alpha says how much they count where there are
some. Without --student one is derived from the teacher and starts from its weights.`,
		Flags: tr.flags(own),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			step, err := tr.options.Step(distill.Distill.Name)
			if err != nil {
				return &usageError{err}
			}
			i := slices.IndexFunc(tr.options.Given(), func(o pass.Option) bool { return o.Name == "teacher" })
			if i < 0 {
				return usagef("--teacher is missing: the model to learn from")
			}
			if student != "" {
				return t.train(c, tr, []string{student}, "distill", []pass.Step{step})
			}
			derived, err := derivation(derive.Value, amount)
			if err != nil {
				return &usageError{err}
			}
			return t.train(c, tr, []string{tr.options.Given()[i].Value}, "distill", []pass.Step{derived, step})
		},
	}
}

// derivation is the step that makes a student of its teacher.
func derivation(method, amount string) (pass.Step, error) {
	for _, m := range offered("prune") {
		if m.Name == method {
			return pass.NewStep(m, func(fs *flag.FlagSet) error { return fs.Set("amount", amount) })
		}
	}
	return pass.Step{}, usagef("--derive %s: there is no such method", method)
}

// train runs the steps, and the method that training was aware of behind them.
func (t *tool) train(c *cli.Context, tr *training, models []string, label string, steps []pass.Step) error {
	if err := tr.verifyOn(); err != nil {
		return err
	}
	for _, o := range tr.options.Given() {
		if o.Name != "aware" {
			continue
		}
		for _, m := range offered("quantize") {
			if m.Name == o.Value {
				step, err := pass.NewStep(m, func(*flag.FlagSet) error { return nil })
				if err != nil {
					return err
				}
				steps = append(steps, step)
			}
		}
	}
	return t.compress(c, models, label, steps, tr.w)
}
