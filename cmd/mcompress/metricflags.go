package main

import (
	"flag"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/report"
)

// metricFlags are the flags of the metric of verification.
type metricFlags struct{ metric string }

func (m *metricFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&m.metric, "metric", "", "`name` of the metric to measure besides accuracy: "+strings.Join(metric.Names(), ", ")+"; options follow colons, as in cer:blank=0")
}

// measure is the metric of the flags, nil for none.
func (m *metricFlags) measure(data job.Data, gates []report.Limit) (metric.Measure, error) {
	bounded := slices.ContainsFunc(gates, func(l report.Limit) bool { return l.Name == "max-metric-drop" })
	switch {
	case m.metric == "" && bounded:
		return nil, usagef("--max-metric-drop requires --metric")
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
