package mcompress

import "github.com/mcompress/mcompress/report"

// A Gate is a limit that a result must keep.
type Gate struct {
	Name  string  // as the flag of the command line program
	Bound float64 // in the unit of the quantity: a factor, bytes, a fraction, decibels
}

// MinRatio is the minimum compression ratio of the files.
func MinRatio(factor float64) Gate { return Gate{Name: "min-ratio", Bound: factor} }

// MaxSize is the maximum size of the files in bytes.
func MaxSize(bytes int64) Gate { return Gate{Name: "max-size", Bound: float64(bytes)} }

// MinCoverage is the minimum fraction of the bytes of weights that are compressed, as in Coverage of the report.
func MinCoverage(fraction float64) Gate { return Gate{Name: "require-coverage", Bound: fraction} }

// MinSQNR is the minimum SQNR of every float output in dB.
func MinSQNR(decibels float64) Gate { return Gate{Name: "min-sqnr", Bound: decibels} }

// MinCosine is the minimum cosine similarity of every float output.
func MinCosine(similarity float64) Gate { return Gate{Name: "min-cosine", Bound: similarity} }

// MinAgreement is the minimum fraction of samples whose top-1 class is that of the source.
func MinAgreement(fraction float64) Gate { return Gate{Name: "min-agreement", Bound: fraction} }

// MaxAccuracyDrop is the maximum drop of accuracy, a fraction of the samples. It requires data with labels.
func MaxAccuracyDrop(fraction float64) Gate { return Gate{Name: "max-accuracy-drop", Bound: fraction} }

// MaxMetricDrop is the maximum drop of the metric of WithMetric or WithEvaluator, in its unit.
func MaxMetricDrop(by float64) Gate { return Gate{Name: "max-metric-drop", Bound: by} }

// MaxLatencyRatio is the maximum time of a run divided by that of the source, the minimum of interleaved runs in the embedded engine. The
// machine must be otherwise idle.
func MaxLatencyRatio(factor float64) Gate { return Gate{Name: "max-latency-ratio", Bound: factor} }

// measured reports whether the gate requires a run of the models.
func (g Gate) measured() bool { return g.timed() || g.onOutputs() }

// timed reports whether the gate is on time.
func (g Gate) timed() bool {
	return report.KindOf(g.Name) == report.OnTime
}

// onOutputs reports whether the gate is on outputs, whose errors depend on the inputs.
func (g Gate) onOutputs() bool {
	return report.KindOf(g.Name) == report.OnOutputs
}
