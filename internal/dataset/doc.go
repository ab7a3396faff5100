// Package dataset reads samples and feeds them to a model: batches of arrays named after
// the model's inputs, in the model's element types and shapes, with labels and recorded
// outputs where the data has them. Without data, Generate makes random inputs from a seed.
//
// Open reads NumPy arrays, IDX files, CSV, CIFAR-10, images and ONNX test data, and streams them: memory is
// proportional to the size of a batch, not of the data. The package is independent of the engine and of the use of
// batches.
package dataset
