// Package recurrent holds RNN, GRU, LSTM and com.microsoft.DynamicQuantizeLSTM: layers that process sequences step by
// step; and the gradients of the first three.
//
// It must not know graphs or plans; matrices are multiplied by engine/gemm.
package recurrent

import "github.com/mcompress/mcompress/internal/engine/op"

// Ops are the rows of this family.
func Ops() []op.Op {
	var rows []op.Op
	for _, k := range []*kind{rnn, gru, lstm} {
		rows = append(rows, op.Op{Type: k.name, Since: 7, Shape: k.shape, Run: k.run, Work: k.work, Prepare: k.prepare})
	}
	quantized := *lstm
	quantized.name, quantized.quantized = "DynamicQuantizeLSTM", true
	rows = append(rows, gradients()...)
	return append(rows, op.Op{
		Domain: "com.microsoft", Type: quantized.name, Since: 1,
		Shape: quantized.shape, Run: quantized.run, Work: quantized.work, Prepare: quantized.prepare,
	})
}
