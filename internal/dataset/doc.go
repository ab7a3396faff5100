// Package dataset reads samples and feeds them to a model: batches of arrays named after
// the model's inputs, in the model's element types and shapes, with labels and recorded
// outputs where the data has them. Without data, Generate makes inputs up from a seed.
//
// Open takes NumPy arrays, IDX files, CSV, CIFAR-10, images and ONNX test data, and
// streams them: what is held grows with a batch, not with the data. The package must not
// know what runs the model, nor what the batches are for.
package dataset
