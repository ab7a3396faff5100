package main

import (
	"flag"
	"strings"
	"time"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/metric"
)

// metricFlags are the flags of the metric of verification.
type metricFlags struct {
	metric, evaluator string
	perplexity        string // data of token ids
	limit             time.Duration
}

func (m *metricFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&m.metric, "metric", "", "`name` of the metric to measure besides accuracy: "+strings.Join(metric.Names(), ", ")+"; options follow colons, as in cer:blank=0")
	fs.StringVar(&m.evaluator, "evaluator", "", "`command` that measures a metric of your own; it is run without a shell, with the paths of three .npz files as last arguments (outputs of the reference, outputs of the model, inputs and labels), and writes {\"name\": text, \"value\": number, \"higher_is_better\": boolean} to stdout")
	fs.StringVar(&m.perplexity, "perplexity", "", "`path` of token ids: --metric perplexity on these samples, instead of --data: .npy of one axis, .bin of 16 or 32 bits, or any data with the input of token ids")
	fs.DurationVar(&m.limit, "evaluator-timeout", mcompress.DefaultCommandLimit, "maximum `time` of one run of --evaluator")
}

// fill sets the metric of v.
func (m *metricFlags) fill(v *mcompress.Verification) (err error) {
	v.Metric, v.Perplexity = m.metric, m.perplexity
	if m.evaluator == "" {
		return nil
	}
	if m.limit <= 0 {
		return usagef("--evaluator-timeout %v: must be positive", m.limit)
	}
	if v.Command, err = metric.Split(m.evaluator); err != nil {
		return usagef("--evaluator %q: %v", m.evaluator, err)
	}
	v.CommandLimit = m.limit
	return nil
}
