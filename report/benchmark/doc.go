// Package benchmark holds measurements of models as data: latency, throughput and memory of runs and of training steps.
//
// It holds results only and measures nothing.
package benchmark
