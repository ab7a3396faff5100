// Package layerwise runs a model on calibration samples layer by layer and lets weights be replaced in between: a
// method that quantizes or prunes a layer observes its inputs as computed by the already compressed layers before it.
// Each node runs once per sample. Memory: the weights of one part, one sample, and a fixed number of bytes for the
// activations that later parts read; the other activations are in a temporary file.
//
// It must not know what is observed, nor how weights are compressed.
package layerwise
