// Package latency measures latency, throughput and peak memory of a model in this process, and
// profiles it by node, as a table and as a trace. Callers start one process per measurement.
//
// It must not know flags, terminals or how the processes are started.
package latency
