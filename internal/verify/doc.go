// Package verify compares two models on the same samples, or one model with recorded
// outputs: errors by output and by layer, accuracy.
//
// Memory is bounded by a batch of samples and a chunk of the values inside the graphs; errors are
// accumulated. It does not depend on model files, reports or methods.
package verify
