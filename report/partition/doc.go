// Package partition holds the partition of a model for several devices as data: the plan of its pipeline stages and
// tensor-parallel weights, the manifests of the files, and a run of them.
//
// It holds results only and partitions nothing.
package partition
