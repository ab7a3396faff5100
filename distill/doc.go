// Package distill trains models: FineTune recovers accuracy after compression, and Distill trains a student from a
// teacher (knowledge distillation). A training step is a graph that package grad builds and the engine runs; this
// package adds losses, optimizers, data, the training loop, checkpoints, quantization-aware training and memory
// planning.
//
// It must not know model files, reports or the command line.
package distill
