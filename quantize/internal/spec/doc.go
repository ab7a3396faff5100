// Package spec quantizes single weights: QuantSpec and scale layouts, recipes that stream a weight into quantized
// values, scales and zero points (per tensor, per channel, blockwise, small floats), and recipes that restore it. real
// = (q - zero point) * scale.
//
// It must not depend on nodes: which operators consume a weight, and what replaces them.
package spec
