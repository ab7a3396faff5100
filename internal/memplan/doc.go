// Package footprint says what memory a model needs while it runs, and plans it without reading
// its weights: weights by element type, activations over time and at their peak, by batch
// size; the largest batch for a budget; what channels last would do; and, where it is asked to run
// the model, what that really took.
//
// It must not know flags, terminals or formats of reports.
package memplan
