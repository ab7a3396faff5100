// Package calibrate runs a model on calibration data and observes its activations: histograms and ranges (Observer),
// means and variances by channel (Channels), or any other statistic (Data.Each). Memory grows with one run, not with
// the number of samples.
//
// It must not know the use of the statistics.
package calibrate
