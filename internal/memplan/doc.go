// Package memplan plans the memory of a model without reading its weights: weights by element type,
// activations over time and at their peak, by batch size; the largest batch within a budget; the effect
// of channels last; memory of training by the planner of distill, with the largest batch and the cheapest
// memory savings within a budget; and, optionally, a measurement of a run.
//
// It does not depend on flags, terminals or formats of reports.
package memplan
