// Package quantize holds the option structs of the quantization methods, one per file, and of the methods that prepare
// a model for them. The implementations are in quantize/internal: weightonly, dynamic, qdq and float find the weights,
// plan how each is stored, and emit nodes; they share spec (quantized values, scales and zero points), weights
// (consumers) and rewrite (nodes).
//
// It does not depend on file formats or reports.
package quantize
