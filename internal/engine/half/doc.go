// Package half computes on Float16 tensors: it lists the operators that accept them, which convert in their own loops,
// and runs other float32 operators on chunks of images or elements, so that no large tensor exists in float32 as a
// whole. Sums, weights and their gradients stay float32.
//
// It must not know graphs or plans, nor how the operators work that it runs.
package half
