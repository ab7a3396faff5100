// Package smoothing moves the differences in size of activations' channels into the weights
// that read them (Xiao et al., SmoothQuant, ICML 2023): a channel is divided by a factor where
// it is made, and the weights that read it are multiplied by that.
//
// It does not know how weights will be stored.
package smoothing
