// Package biascorrection corrects biases for the mean error that quantized weights add to outputs.
package biascorrection
