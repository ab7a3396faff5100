package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
)

// variantFlag is the flag --variants: dtypes of transformers.js.
type variantFlag struct{ dtypes []string }

func (s *variantFlag) flags() []cli.Flag {
	return group("variants", func(fs *flag.FlagSet) {
		fs.Var(s, "variants", "comma-separated `dtypes` of transformers.js: fp16, q8, int8 (also q8), uint8, q4, q4f16, q2, q2f16; writes onnx/model.onnx, the source, and a file for each dtype, such as onnx/model_q4.onnx, into the folder of --output, or with a model card into that of --push hf:DIR")
	})
}

// String is the dtypes.
func (s *variantFlag) String() string { return strings.Join(s.dtypes, ",") }

// Choices returns the values for completion.
func (s *variantFlag) Choices() []string { return mcompress.VariantNames() }

// Set accepts dtypes.
func (s *variantFlag) Set(text string) error {
	s.dtypes = strings.Split(text, ",")
	for _, word := range s.dtypes {
		if !slices.Contains(mcompress.VariantNames(), word) {
			return fmt.Errorf("there are %s", mcli.And(mcompress.VariantNames()))
		}
	}
	return nil
}

// run writes the variants of each model.
func (s *variantFlag) run(c *cli.Context, t *tool, o *mcli.MethodOptions, models []string, w *requestFlags, test testSet) error {
	w.Variants = &mcompress.Variants{DTypes: s.dtypes, Options: o.Given()}
	if t.planned != nil {
		return usagef("a plan has no --variants")
	}
	if err := w.samples.adopt(o.Given(), test); err != nil {
		return err
	}
	return w.run(c, t, models)
}

// variants prints the table of variants.
func (p *outcomePrinter) variants(batch mcli.Batch, codes []int) error {
	print := batch.VariantsText
	if p.json {
		print = batch.VariantsJSON
	}
	to := p.request.Push
	switch {
	case p.request.DryRun:
		to = "(dry run, no file written)"
	case p.request.Output != "":
		to = mcompress.VariantFolder(p.request.Output)
	}
	if err := print(p.stdout, p.style(), to); err != nil {
		return err
	}
	if p.request.Push != "" && p.request.Output == "" && batch[0].Pushed == nil && first(codes) != exitDone {
		printError(p.stderr, withCommand(p.command, fmt.Errorf("nothing is pushed, and the results are dropped; --output keeps them")))
	}
	return nil
}
