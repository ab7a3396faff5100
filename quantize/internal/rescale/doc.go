// Package rescale multiplies the channels of layers by constants. A layer is a Conv,
// ConvTranspose, Gemm or MatMul with a constant weight that nothing else reads, and its
// bias, be that an input or the Add behind a MatMul. Weights become views that multiply
// as they are read; biases are few numbers and are computed at once.
//
// It does not know what channels are multiplied by, or why.
package rescale
