// Package partition partitions a model for several devices: pipeline parallelism as a chain of stage models connected
// by named values, and the weights that tensor parallelism would split within a stage.
//
// It must not know flags, terminals or methods of compression.
package partition
