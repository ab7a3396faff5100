// Package verify runs two models on the same samples, or one on samples with recorded
// outputs, and says how far apart they are: by output, by layer, by accuracy.
//
// It holds a batch of samples and some values inside the graphs at a time, and sums over
// the rest. It must not know files of models, reports or how a model was made.
package verify
