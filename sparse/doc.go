// Package sparse stores weights with many equal elements as the others and where they
// stand, in standard operators that a runtime folds into the dense weight when it loads
// the model: coordinates, compressed rows, blocks, a bit mask, or the gaps between
// values. Every form gives back the same bits.
//
// A zero is an element with all bits zero: -0.0 and NaN are values. Of 8-bit codes the
// most frequent byte is left out, whatever it is, as their zero point need not be 0.
//
// The package decides by bytes in the file, graph included. It chooses no weights'
// values: pruning does that.
package sparse
