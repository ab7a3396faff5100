// Package calibrate runs a model over samples and shows who asks the values inside its graph: what ranges,
// sums of squares and the like are taken from. What is held at a time grows with one run, not with the samples.
//
// It must not know what the values are for.
package calibrate
