// Package packedweight is the forms in which constant weights are held in memory smaller than float32 (op.Packed):
// indices into a table with scales of blocks (Lookup, Scaled), quantized values of a few bits with scales and zero
// points (Quantized), and mostly zeros (Sparse, Filled). Products, lookups and convolutions decode the parts that they
// compute with, or have a Quantized arranged for their kernels.
//
// Cast, Div, Mod, Sub and Mul are the operators that exporters write between the stored values and a weight, on these
// forms: each makes another form of one, or nil, with which the weight becomes dense. So every chain of them is
// recognized without patterns of nodes.
//
// It must not know graphs, plans or files, nor the operators that multiply or look up.
package packedweight
