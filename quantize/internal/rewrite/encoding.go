package rewrite

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// PerChannelEncoding is the encoding of w that all its consumers can read, or the reason why there is none.
func PerChannelEncoding(w *weights.Weight, qs spec.QuantSpec, b *spec.BufferPool) (*spec.PerChannel, pass.Reason) {
	first := w.Consumers[0]
	cd := &spec.PerChannel{Buffers: b, Weight: w.Base.Const, Shape: first.BaseShape(), Spec: qs, Transpose: true}
	axis := first.ChannelAxis()
	for _, s := range w.Consumers {
		if !slices.Equal(s.BaseShape(), cd.Shape) {
			return nil, pass.Reason{Code: pass.Shape, Detail: "different shapes at consumers"}
		}
		// Matrices of a batch have scales of rows on the left and of columns on the right, which no one tensor is.
		if len(s.Shape) > 2 && s.Side != first.Side {
			return nil, pass.Reason{Code: pass.Shape, Detail: "batched matrices on both sides of products"}
		}
		cd.Transpose = cd.Transpose && s.Transposed && s.Side == weights.Right
		cd.Spec.Unsigned = cd.Spec.Unsigned || s.RequiresUint8(w)
		// Zero points along the reduction axis, or for each row of a left matrix, cannot be expressed.
		if !qs.PerTensor && (s.ChannelAxis() != axis || s.Side == weights.Left) {
			cd.Spec.Symmetric = true
		}
	}
	cd.Axis = axis
	placeScales(cd, qs.PerTensor, w)
	return cd, pass.Reason{}
}

// placeScales sets the granularity and the shape of the scales, such that they multiply the output of the first
// consumer.
func placeScales(c *spec.PerChannel, perTensor bool, w *weights.Weight) {
	rank := len(c.Shape)
	n := (ir.Spec{Shape: c.Shape}).Elems()
	switch {
	case perTensor || c.Axis < 0:
		c.Layout, c.Axis = spec.PerTensorLayout(n), -1
	case rank > 2 && c.Axis == rank-1: // a column of each matrix
		c.Layout = spec.PerColumnLayout(n/(c.Shape[rank-2]*c.Shape[rank-1]), c.Shape[rank-2], c.Shape[rank-1])
		c.ScaleShape = append(slices.Clone(c.Shape[:rank-2]), 1, c.Shape[rank-1])
	case rank > 2 && c.Axis == rank-2: // a row of each matrix
		c.Layout = spec.PerRowLayout(n/c.Shape[rank-1], c.Shape[rank-1])
		c.ScaleShape = append(slices.Clone(c.Shape[:rank-1]), 1)
	default:
		c.Layout = spec.PerAxisLayout(c.Shape, c.Axis)
		c.ScaleShape = []int64{c.Shape[c.Axis]}
		if c.Axis == 0 && slices.ContainsFunc(w.Consumers, func(s *weights.Consumer) bool {
			return s.Side != weights.Right
		}) {
			for range rank - 1 {
				c.ScaleShape = append(c.ScaleShape, 1)
			}
		}
	}
}
