// Package grad builds the graph of a training step: it copies a model's graph as the forward pass and adds the backward
// pass, the nodes that compute the gradients of the parameters in reverse order (reverse-mode automatic
// differentiation). The graph runs in the engine like any other, in a planned arena.
//
// It must not know the meaning of losses, optimizers, data or files. A rule for an operator is a row of a table, with
// one file per operator family, as for the operators in the packages next to this one.
//
// # Writing a rule
//
// Backward receives the node and the gradients of its outputs, nil for outputs that the loss does not depend on, and
// returns those of its inputs, nil where Tape.Needs is false. It adds nodes by Tape.Op, for operators of ONNX in their
// newest version, and Tape.Own, for those of package backward. Each value of the forward graph that a rule consumes is
// stored until then: a rule prefers values that are stored anyway, such as the output of Relu rather than its input.
// Shapes are known and fixed: Tape.Shape.
//
// Forward, if a rule has it, replaces the node by a form that stores the inputs of the gradient, such as the indices of
// the maxima of MaxPool.
package grad
