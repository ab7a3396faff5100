// Package profile measures training steps and runs of a model: time by operator and phase, live memory over time and at
// its peak, values that live longer than they are used, and memory that grows from step to step. It keeps sums, and the
// single events of a few steps for a trace.
package profile
