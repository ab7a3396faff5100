package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/report"
)

// cardFlags are the flags of model cards.
type cardFlags struct{ base, task string }

func (f *cardFlags) flags(fs *flag.FlagSet) {
	fs.StringVar(&f.base, "base-model", "", "`name` of the source on the Hugging Face Hub, OWNER/NAME, for the report card; none for a model that is not there")
	fs.StringVar(&f.task, "pipeline-tag", "", "`task` of the model for the report card, such as image-classification")
}

// card is the model card of the flags. A card among the formats requires a base model.
func (f *cardFlags) card(formats ...string) (report.Card, error) {
	c := report.Card{BaseModel: f.base, PipelineTag: f.task}
	switch wanted := slices.Contains(formats, "card"); {
	case f.base == "none":
		c.BaseModel = ""
	case f.base == "" && wanted:
		return c, usagef("the report card requires --base-model OWNER/NAME, the source on the Hugging Face Hub, or --base-model none")
	}
	if err := c.Check(); err != nil {
		return c, &usageError{err}
	}
	return c, nil
}

// warn reports a model card for the Hugging Face Hub that names no base model.
func (f *cardFlags) warn(t *tool, command, dest string) {
	if strings.HasPrefix(dest, "hf:") && f.base == "" {
		printError(t.stderr, fmt.Errorf("%s: warning: the model card names no base model; give --base-model OWNER/NAME, or none", command))
	}
}
