// Package train holds what a training step needs beside gradients: losses, updates of weights, gradients kept over
// several batches, random changes of inputs and activations, and weights that are rounded as a quantized model will have
// them. They are the nodes, of domain "mcompress", that a trainer adds to the graph of a step.
//
// Operators whose rows have Writes change the arrays of those inputs: weights, states of optimisers and sums of gradients
// are inputs of the step's graph, and whoever runs it keeps their arrays. All other inputs are only read. Numbers
// do not depend on how many workers there are: work is cut by shapes alone, and sums are made in float64 in
// a fixed order.
//
// It must not know graphs, rules of gradients, data, or when a step is run.
package train
