// Package partition partitions a model for several devices: pipeline parallelism as a chain of stage models connected
// by named values, and tensor parallelism as shards of each rank, between which values are summed.
//
// It must not know flags, terminals or methods of compression.
package partition
