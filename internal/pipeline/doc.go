// Package pipeline runs the stages and shards of a partitioned model by their manifest, as one session: in this
// process, or each stage and each rank in a process of its own, connected by pipes.
//
// It must not know flags and terminals, nor how a model is partitioned.
package pipeline
