// Package fleet is the contract between a worker and a scheduler that runs many of them: lists of models, and the shard
// of a list that a worker processes. It does not open or compress models.
package fleet
