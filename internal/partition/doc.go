// Package stages cuts a model into stages for several devices: a pipeline of models, each of which is
// given values by name from those before it, and the weights that tensor parallelism would cut
// within a stage.
//
// It must not know flags, terminals or methods of compression.
package partition
