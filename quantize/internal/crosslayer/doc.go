// Package crosslayer is cross-layer equalization (Nagel et al. 2019, Data-Free Quantization, section 4.1): it finds
// consecutive layers between which channels may be scaled, and equalizes the ranges of the weights on both sides.
//
// It must not know how the weights will be stored.
package crosslayer
