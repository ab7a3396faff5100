package mcompress

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

// MaxMetricDrop is the maximum drop of the metric of the verification, in its unit.
func MaxMetricDrop(by float64) Gate { return Gate{Name: "max-metric-drop", Bound: by} }

// MaxLatencyRatio is the maximum time of a run divided by that of the source, the minimum of interleaved runs in the
// embedded engine. The machine must be otherwise idle.
func MaxLatencyRatio(factor float64) Gate { return Gate{Name: "max-latency-ratio", Bound: factor} }

// MaxBaselineSizeRatio is the maximum size of the files divided by that of the baseline.
func MaxBaselineSizeRatio(factor float64) Gate {
	return Gate{Name: "max-baseline-size-ratio", Bound: factor}
}

// MaxBaselineMetricDrop is the maximum drop of the metric, else of accuracy, below that of the baseline on the same
// samples, in its unit.
func MaxBaselineMetricDrop(by float64) Gate { return Gate{Name: "max-baseline-metric-drop", Bound: by} }

// MaxBaselineLatencyRatio is the maximum time of a run divided by that of the baseline; both are relative to the source
// if it is the same.
func MaxBaselineLatencyRatio(factor float64) Gate {
	return Gate{Name: "max-baseline-latency-ratio", Bound: factor}
}
