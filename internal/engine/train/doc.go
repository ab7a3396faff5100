// Package train holds the operators of a training step besides gradients: losses, updates of weights, accumulation of
// gradients, random augmentation and dropout, the straight-through estimator, and float16 and disk storage of
// activations. They are the nodes of domain "mcompress" that a trainer adds to the graph of a step.
//
// Operators with Writes in their row change the arrays of those inputs: weights, optimizer states and accumulated
// gradients are inputs of the step's graph, and the caller owns their arrays. Results do not depend on the number of
// workers: work is divided by shapes alone, and sums are in float64 in a fixed order.
//
// It must not know graphs, gradient rules, data, or the training loop.
package train
