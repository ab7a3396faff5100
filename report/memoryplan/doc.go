// Package memoryplan holds the memory plan of a model as data: weights, live tensors of each step and the peak of a
// run, the largest batch within a budget, the effect of channels last, and measurements.
//
// It holds results only and plans nothing.
package memoryplan
