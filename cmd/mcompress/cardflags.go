package main

import (
	"flag"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/report"
)

// cardFlags are the flags of model cards.
type cardFlags struct{ base, task string }

func (f *cardFlags) flags(fs *flag.FlagSet) {
	fs.StringVar(&f.base, "base-model", "", "`name` of the source on the Hugging Face Hub, OWNER/NAME, for the report card; none for a model that is not there")
	fs.StringVar(&f.task, "pipeline-tag", "", "`task` of the model for the report card, such as image-classification")
}

// fill sets the fields of the flags in r.
func (f *cardFlags) fill(r *mcompress.Reports) { r.BaseModel, r.PipelineTag = f.base, f.task }

// card is the model card of the flags, which a card among the formats requires.
func (f *cardFlags) card(formats ...string) (report.Card, error) {
	r := f.reports()
	r.Formats = formats
	return r.Card()
}

func (f *cardFlags) reports() (r mcompress.Reports) {
	f.fill(&r)
	return r
}
