package report

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/report/verification"
)

// A Baseline is the figures of an earlier result, such as the model that is deployed, which gates compare a result
// with.
type Baseline struct {
	Name string `json:"name"` // of its report, or the reference of a registry
	// there is none yet: gates relative to it are not evaluated, and the rest is empty
	None    bool            `json:"none,omitempty"`
	Digest  string          `json:"digest,omitempty"`          // of its report
	Source  string          `json:"source_sha256,omitempty"`   // of its source
	Bytes   int64           `json:"bytes"`                     // of its files
	Data    *BaselineData   `json:"data,omitempty"`            // that it was run on; nil where it was not run on files
	Metric  *BaselineMetric `json:"metric,omitempty"`          // nil where none was measured
	Latency *Latency        `json:"latency_seconds,omitempty"` // nil where it was not measured
}

// BaselineData identifies samples.
type BaselineData struct {
	Samples int    `json:"samples"`
	SHA256  string `json:"sha256"` // of their files
}

// A BaselineMetric is the metric of a baseline: that of --metric or --evaluator, else accuracy.
type BaselineMetric struct {
	Name           string  `json:"name"`
	Value          float64 `json:"value"`
	HigherIsBetter bool    `json:"higher_is_better"`
}

// A Latency is the time of a run in seconds, and that of a run of the source.
type Latency struct {
	Source float64 `json:"source"`
	Result float64 `json:"result"`
}

// NewBaseline is the result of r as a baseline; name is for reports.
func NewBaseline(name string, r *Report) *Baseline {
	b := &Baseline{Name: name, Digest: r.Digest, Source: r.Source.sum(), Bytes: fileBytes(r.Result), Metric: r.metric()}
	if v := r.Verification; v != nil {
		b.Data = samplesOf(v)
		if v.Latency != nil {
			b.Latency = &Latency{v.Latency.Before, v.Latency.After}
		}
	}
	return b
}

// text names the baseline.
func (b *Baseline) text() string {
	if b.None {
		return b.Name + " (there is none yet: the result is the first champion)"
	}
	return b.Name
}

// samplesOf identifies the samples of a verification; nil if they are not from files.
func samplesOf(v *verification.Result) *BaselineData {
	if v.Data == nil || v.Data.SHA256 == "" {
		return nil
	}
	return &BaselineData{v.Data.Samples, v.Data.SHA256}
}

// sum is the digest of the model file; empty where it is not known.
func (s Side) sum() string {
	if len(s.Files) == 0 {
		return ""
	}
	return s.Files[0].SHA256
}

// metric is the metric of the result; nil where none was measured.
func (r *Report) metric() *BaselineMetric {
	v := r.Verification
	switch {
	case v == nil:
		return nil
	case v.Metric != nil && v.Metric.After != nil:
		return &BaselineMetric{v.Metric.Name, *v.Metric.After, v.Metric.HigherIsBetter}
	case v.Accuracy != nil:
		return &BaselineMetric{"accuracy", v.Accuracy.After, true}
	}
	return nil
}

// baselineRules are the gates that compare a result with a baseline.
func baselineRules() []rule {
	return []rule{
		{name: "max-baseline-size-ratio", unit: inFactor, value: (*Report).baselineSize, atMost: true, relative: true,
			doc: "maximum size of the files divided by that of --baseline, a `factor`"},
		{
			name:     "max-baseline-metric-drop",
			unit:     inNumber,
			value:    (*Report).baselineDrop,
			atMost:   true,
			relative: true,
			kind:     OnOutputs,
			doc: "maximum drop of --metric, --evaluator or else accuracy below --baseline, a `number` in its unit, on " +
				"the same samples",
		},
		{
			name:     "max-baseline-latency-ratio",
			unit:     inFactor,
			value:    (*Report).baselineLatency,
			atMost:   true,
			relative: true,
			kind:     OnTime,
			doc: "maximum time of a run divided by that of --baseline, a `factor`; both relative to the source if it is " +
				"the same",
		},
	}
}

const noBaseline = "there is no baseline"

// baselineSize is the size of the files by that of the baseline.
func (r *Report) baselineSize() (float64, string) {
	if r.Baseline == nil || r.Baseline.Bytes == 0 {
		return math.NaN(), noBaseline
	}
	return float64(fileBytes(r.Result)) / float64(r.Baseline.Bytes), ""
}

// baselineDrop is by how much the metric is worse than that of the baseline, on the same samples.
func (r *Report) baselineDrop() (float64, string) {
	m := r.metric()
	switch {
	case r.Baseline == nil:
		return math.NaN(), noBaseline
	case m == nil:
		return math.NaN(), "no metric was measured: it needs samples with labels, --metric or --evaluator"
	// A gate on a drop from 0 would hold for any model.
	case r.Baseline.Metric != nil && m.HigherIsBetter && r.Baseline.Metric.Value == 0 && m.Value == 0:
		return math.NaN(), "the " + m.Name + " of both is 0, which no model can miss: check the labels"
	case r.Baseline.Metric == nil || r.Baseline.Metric.Name != m.Name:
		return math.NaN(), "the baseline has no " + m.Name
	case r.Baseline.Data == nil || samplesOf(r.Verification) == nil || *samplesOf(r.Verification) != *r.Baseline.Data:
		return math.NaN(), "the metric of the baseline is of other samples"
	}
	drop := r.Baseline.Metric.Value - m.Value
	if !m.HigherIsBetter {
		drop = -drop
	}
	// Without the error of binary fractions: 0.9 - 0.8 is a drop of 0.1, within a limit of 0.1.
	return math.Round(1e9*drop) / 1e9, ""
}

// baselineLatency is the time of a run by that of the baseline. Both are relative to the source if it is the same one,
// as they were measured at different times and maybe on different machines.
func (r *Report) baselineLatency() (float64, string) {
	switch {
	case r.Baseline == nil:
		return math.NaN(), noBaseline
	case r.Verification == nil || r.Verification.Latency == nil || r.Verification.Latency.Before == 0:
		return math.NaN(), "latency was not measured"
	case r.Baseline.Latency == nil || r.Baseline.Latency.Result == 0 || r.Baseline.Latency.Source == 0:
		return math.NaN(), "the latency of the baseline was not measured"
	}
	l, b := r.Verification.Latency, r.Baseline.Latency
	if sum := r.Source.sum(); sum != "" && sum == r.Baseline.Source {
		return l.After / l.Before / (b.Result / b.Source), ""
	}
	return l.After / b.Result, ""
}

// A GateKind is what a gate requires.
type GateKind int

// The kinds.
const (
	OnFiles   GateKind = iota // the files, and which weights changed
	OnOutputs                 // the outputs of both models on samples
	OnTime                    // the time of a run of both models
)

// KindOf is the kind of the gate of that name.
func KindOf(gate string) GateKind {
	rs := rules()
	i := slices.IndexFunc(rs, func(r rule) bool { return r.name == gate })
	if i < 0 {
		return OnFiles
	}
	return rs[i].kind
}
