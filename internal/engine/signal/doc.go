// Package signal holds the operators on sampled signals: windows, Fourier transforms, mel filters, and decoding of
// images.
//
// They are computed in float64 and rounded once. The package must not know graphs, plans or other families.
package signal
