// Package palette stores weights as indices into codebooks (weight sharing; Han et al., Deep Compression, ICLR 2016):
// each element is an entry of its codebook times the scale of its block. Codebooks are found by exact one-dimensional
// k-means, those of vectors of elements by k-means++.
package palette
