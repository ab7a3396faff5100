package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/distill"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
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
stay zero. With --aware "weight-int4 block=64" training computes with what that method would make of weights and
activations, and the result is quantized by it, with the options behind its name.`,
		Flags: tr.flags(nil),
		Action: func(c *cli.Context) error {
			models, err := arguments(c, 1, math.MaxInt)
			if err != nil {
				return err
			}
			step, err := tr.step(distill.FineTune)
			if err != nil {
				return err
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
			step, err := tr.step(distill.Distill)
			if err != nil {
				return err
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
	ahead, behind, err := tr.rounding()
	if err != nil {
		return err
	}
	return t.compress(c, models, label, slices.Concat(ahead, steps, behind), tr.w)
}

// aware is what --aware says, a method and its options.
func (tr *training) aware() (method string, options []string) {
	for _, o := range tr.options.Given() {
		if words := strings.Fields(o.Value); o.Name == "aware" && len(words) > 0 {
			method, options = words[0], words[1:]
		}
	}
	return method, options
}

// step is the method that trains with the options that were given. The one that it is aware of is a step of its own.
func (tr *training) step(m *pass.Method) (pass.Step, error) {
	step, err := pass.NewStep(m, func(fs *flag.FlagSet) error {
		method, _ := tr.aware()
		return errors.Join(tr.options.Fill(fs, "aware"), fs.Set("aware", method))
	})
	if err != nil {
		return step, &usageError{err}
	}
	return step, nil
}

// rounding is the step that training is aware of, and what must come before training for that.
func (tr *training) rounding() (ahead, behind []pass.Step, err error) {
	method, options := tr.aware()
	if method == "" {
		return nil, nil, nil
	}
	known := slices.DeleteFunc(offered("quantize"), func(m *pass.Method) bool { return m.Stage != pass.Quantize })
	i := slices.Index(names(known), method)
	if i < 0 {
		return nil, nil, usagef("--aware %s: it takes one of %s", method, mcli.And(names(known)))
	}
	step, err := pass.NewStep(known[i], func(fs *flag.FlagSet) error { return tr.fill(fs, options) })
	if err != nil {
		return nil, nil, usagef("--aware: %v", err)
	}
	if known[i] == quantize.StaticInt8 { // it would fold, and training cannot follow that
		fold, err := pass.NewStep(quantize.FoldBatchNorm, func(*flag.FlagSet) error { return nil })
		if err != nil {
			return nil, nil, err
		}
		ahead = []pass.Step{fold}
	}
	return ahead, []pass.Step{step}, nil
}

// fill sets options of a method that rounds: samples are those that training learns from, and training makes up for what
// biases would be corrected for.
func (tr *training) fill(fs *flag.FlagSet, options []string) error {
	set := func(name, value string) error {
		if fs.Lookup(name) == nil {
			return fmt.Errorf("it has no option %q", name)
		}
		if err := fs.Set(name, value); err != nil {
			return fmt.Errorf("option %q: %w", name, err)
		}
		return nil
	}
	for _, o := range tr.options.Given() {
		if tr.w.proving.sampling.shares(o.Name) && o.Name != "limit" && fs.Lookup(o.Name) != nil {
			if err := set(o.Name, o.Value); err != nil {
				return err
			}
		}
	}
	if fs.Lookup("no-bias-correction") != nil {
		options = append([]string{"no-bias-correction"}, options...)
	}
	for _, o := range options {
		name, value, given := strings.Cut(o, "=")
		if !given {
			value = "true"
		}
		if err := set(name, value); err != nil {
			return err
		}
	}
	return nil
}
