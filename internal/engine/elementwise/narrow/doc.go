// Package narrow encodes and decodes the element types below 16 bits: 8-, 6- and 4-bit floats, and 4- and 2-bit
// integers. Those below 8 bits are packed, lowest bits first, over the whole tensor, so a block starts at a multiple of
// four elements.
//
// It must not know tensors or operators.
package narrow
