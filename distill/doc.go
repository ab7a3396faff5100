// Package distill trains models: the methods finetune, which wins back what compression lost, and distill, which teaches
// a student what its teacher knows. A step is a graph that package grad makes and the engine runs; this package
// says what it is for: losses, updates, data, the course of training, and how it fits into a budget of
// memory.
//
// It must not know files of models, reports or the command line.
package distill
