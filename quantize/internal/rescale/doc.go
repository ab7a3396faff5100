// Package rescale multiplies the channels of layers by constants. A layer is a Conv,
// ConvTranspose, Gemm or MatMul with a constant weight without other consumers, and its
// bias: an input, or the Add after a MatMul. Scaled weights are views that multiply when
// read; biases are small and are computed at once.
//
// It must not know the origin of the factors.
package rescale
