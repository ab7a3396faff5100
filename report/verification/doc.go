// Package verification holds the result of running two models on the same samples, or one model on recorded outputs:
// the errors of each output and layer, and accuracy. Rules are the quantities of the gates on outputs.
//
// It holds results only and runs no model.
package verification
