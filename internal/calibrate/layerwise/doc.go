// Package layerwise runs a model over samples in parts, one after another, and lets weights be replaced in
// between: who rounds a layer's weights sees its inputs as the layers before it, already rounded, give them. Each node
// runs once for each sample. In memory are the weights of one part, what one sample takes, and of the values that later parts read
// a fixed number of bytes; the rest of them is in a temporary file.
//
// It must not know why anybody stops, nor what weights become.
package layerwise
