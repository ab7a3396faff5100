// Package attention computes softmax(scale·Q·Kᵀ + mask)·V for many heads at once. Its memory grows with the number of
// keys alone: each worker holds the scores of a block of queries, never all scores (Rabe and Staats, "Self-attention
// Does Not Need O(n²) Memory", 2021).
//
// It must not know tensors, operators or graphs. Operands are matrices with strides, so that heads are multiplied in
// place. Results do not depend on the number of workers.
package attention
