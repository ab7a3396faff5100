// Package half computes on tensors of Float16: operators of float32 that take some images, or some elements, at a time, so that
// no large tensor is there in float32 as a whole. Sums, weights and their gradients stay float32.
//
// It must not know graphs or plans, nor how the operators work that it cuts up.
package half
