// Package layerwise runs a model over samples in parts, one after another, and lets weights be replaced in
// between: who rounds a layer's weights sees its inputs as the layers before it, already rounded, give them. Each node
// runs once for each sample. In memory are the weights of one part, and of each sample the values that later parts read.
//
// It must not know why anybody stops, nor what weights become.
package layerwise
