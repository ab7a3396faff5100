// Package grad makes the graph of a training step: it copies a model's graph, adds the nodes that
// compute the gradients of its parameters in reverse order, and says which values those are. The graph
// runs in the engine like any other, on memory that a plan has fixed.
//
// It must not know losses' meaning, optimisers, data or files. A rule for an operator is a row of a table, one
// file a family, as the operators themselves are in the packages beside this one.
//
// # Writing a rule
//
// Backward is given the node and the gradients of its outputs, nil for those that nothing depends on, and
// returns those of its inputs, nil where Tape.Needs says that none is wanted. It adds nodes by Tape.Op,
// which takes operators of ONNX in their newest form, and Tape.Own, which takes those of package
// backward. Each value of the forward graph that a rule reads is kept in memory until then: a rule takes the one that is
// there anyway, such as the output of Relu rather than its input. Shapes are known and fixed: Tape.Shape.
//
// Forward, where a rule has it, replaces the node by a form that leaves behind what the gradient needs, such as the places of
// the maxima of MaxPool.
package grad
