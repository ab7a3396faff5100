// Package sparse stores weights with many equal elements as the other elements and their positions, in standard
// operators that a runtime folds into the dense weight when it loads the model: coordinates (COO), compressed rows
// (CSR), blocks (BSR), a bit mask, or the gaps between values. Every form restores the dense weight bit-identically,
// but for -0.0, which becomes +0.0, an equal number.
//
// A zero is +0.0 or -0.0, which a weight times a mask has; NaN is a value. Of 8-bit
// quantized weights the most frequent byte is not stored, as their zero point may differ from 0.
//
// The package chooses forms by bytes in the file, with the nodes that restore the weight. It does not change values.
package sparse
