package cluster

import (
	"fmt"
	"strings"
)

// A result is the measurement of a case.
type result struct {
	name    string
	ended   int     // number of processes that were ended early
	seconds float64 // from the submission to the end
	one     usage   // of one process that does the same; zero if there is none
	workers []ended
	others  []ended // finalizers
}

// results are those of all cases.
type results []result

// sum is the CPU time of processes in seconds, that of the one with the most, and the largest memory of one.
func sum(all []ended) (cpu, most float64, memory int64) {
	for _, e := range all {
		cpu, most, memory = cpu+e.CPU, max(most, e.CPU), max(memory, e.Memory)
	}
	return cpu, most, memory
}

// String is a table.
func (r results) String() string {
	var b strings.Builder
	b.WriteString("| case | processes | ended early | s | CPU s: one process | all workers | slowest worker | finalizer | MiB: one process | largest worker | finalizer |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	const mib = 1 << 20
	for _, x := range r {
		all, slowest, memory := sum(x.workers)
		last, _, lastMemory := sum(x.others)
		fmt.Fprintf(&b, "| %s | %d | %d | %.0f | %.1f | %.1f | %.1f | %.1f | %d | %d | %d |\n", x.name,
			len(x.workers)+len(x.others), x.ended, x.seconds,
			x.one.CPU, all, slowest, last, x.one.Memory/mib, memory/mib, lastMemory/mib)
	}
	return b.String()
}
