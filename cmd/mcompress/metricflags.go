package main

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/report"
)

// metricFlags are the flags of the metric of verification.
type metricFlags struct {
	metric, evaluator string
	perplexity        string // data of token ids
	limit             time.Duration
	program           metric.Measure // of evaluator, the same for all comparisons of a run; nil until it is needed
}

// maxEvaluation is the default limit of one run of an evaluator.
const maxEvaluation = 10 * time.Minute

func (m *metricFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&m.metric, "metric", "", "`name` of the metric to measure besides accuracy: "+strings.Join(metric.Names(), ", ")+"; options follow colons, as in cer:blank=0")
	fs.StringVar(&m.evaluator, "evaluator", "", "`command` that measures a metric of your own; it is run without a shell, with the paths of three .npz files as last arguments (outputs of the reference, outputs of the model, inputs and labels), and writes {\"name\": text, \"value\": number, \"higher_is_better\": boolean} to stdout")
	fs.StringVar(&m.perplexity, "perplexity", "", "`path` of token ids: --metric perplexity on these samples, instead of --data: .npy of one axis, .bin of 16 or 32 bits, or any data with the input of token ids")
	fs.DurationVar(&m.limit, "evaluator-timeout", maxEvaluation, "maximum `time` of one run of --evaluator")
}

// measure is the metric of the flags, nil for none.
func (m *metricFlags) measure(data job.Data, gates []report.Limit) (metric.Measure, error) {
	bounded := slices.ContainsFunc(gates, func(l report.Limit) bool { return l.Name == "max-metric-drop" })
	switch {
	case m.metric != "" && m.evaluator != "":
		return nil, usagef("--metric and --evaluator exclude each other")
	case m.perplexity != "" && (m.metric != "" || m.evaluator != ""):
		return nil, usagef("--perplexity excludes --metric and --evaluator")
	case m.perplexity != "":
		return metric.Parse("perplexity")
	case m.evaluator != "":
		e, err := m.command()
		if err == nil && m.program == nil {
			m.program = e.Measure()
		}
		return m.program, err
	case m.metric == "" && bounded:
		return nil, usagef("--max-metric-drop requires --metric, --evaluator or --perplexity")
	case m.metric == "":
		return nil, nil
	}
	c, err := metric.Parse(m.metric)
	if err != nil {
		return nil, usagef("--metric: %v", err)
	}
	if data.Generated() && c.Needs != metric.Reference {
		return nil, usagef("--metric %s requires samples: name them with --data", c.Name)
	}
	return c, nil
}

// command is the evaluator of the flags, nil for none.
func (m *metricFlags) command() (metric.Evaluator, error) {
	if m.evaluator == "" {
		return nil, nil
	}
	args, err := metric.Split(m.evaluator)
	if err != nil {
		return nil, usagef("--evaluator %q: %v", m.evaluator, err)
	}
	if m.limit <= 0 {
		return nil, usagef("--evaluator-timeout %v: must be positive", m.limit)
	}
	return metric.Command(args, m.limit), nil
}

// identity is the evaluator of the flags as checkpoints recognize it: its arguments, and the contents of those that are files.
func (m *metricFlags) identity(ctx context.Context) string {
	args, _ := metric.Split(m.evaluator) // an error is that of command
	for i, arg := range args {
		if st, err := os.Stat(arg); err != nil || !st.Mode().IsRegular() {
			continue // a word, or an address that is not fetched
		}
		if sum, _, err := digest.File(ctx, arg, nil); err == nil {
			args[i] += " " + sum
		}
	}
	return strings.Join(args, "\n")
}
