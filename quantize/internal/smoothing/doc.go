// Package smoothing migrates outlier channels of activations into the consuming weights
// (Xiao et al., SmoothQuant, ICML 2023): a channel is divided by a factor at its producer,
// and the consuming weights are multiplied by it.
//
// It must not know how weights will be stored.
package smoothing
