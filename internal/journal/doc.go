// Package journal keeps the results of units of a long job in a folder next to its output, so that the job continues
// after an interruption: the solution of a layer, the measurement of a candidate, a written payload. A unit whose
// result is there is not computed again, and the end result is that of a run without interruption.
//
// It must not depend on the content of results.
package journal
