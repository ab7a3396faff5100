package smoothing

import (
	"context"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// A folder finds constants that can absorb factors of a value's channels.
type folder struct {
	*rescale.Editor
	channels int64
	visited  int // producers
}

// maxProducers is the number of producers that a search visits: longer chains do not overflow the stack.
const maxProducers = 1000

// A scaler multiplies channels by factors.
type scaler func(ctx context.Context, by []float64) error

// into returns a function that multiplies v's channels at v's producer, nil if that is not possible.
func (f *folder) into(v *ir.Value) scaler {
	n := v.Producer()
	if f.visited++; n == nil || f.visited > maxProducers {
		return nil
	}
	if l, reason := f.Layer(n); reason.None() && l.Last() == n && !l.Spatial() && l.Outputs == f.channels {
		return l.ScaleOutputs
	}
	facts := operator.Of(n)
	gains := facts.With(operator.Gain, operator.Shift)
	switch {
	case len(gains) > 0 && !facts.Spatial && n.Outputs[0] == v:
		return f.gain(n, gains)
	// Relu(f·x) = f·Relu(x) for positive factors. Its input is scaled, so that it must have no other consumer.
	case facts.Homogeneous && facts.Nonlinearity:
		return f.alone(n.Input(0))
	case n.Op.Is("Mul"):
		return f.product(n)
	case n.Op.Is("Add"):
		return f.sum(n)
	}
	return nil
}

// alone is into for a value with one consumer.
func (f *folder) alone(v *ir.Value) scaler {
	if v == nil || len(v.Uses()) != 1 {
		return nil
	}
	return f.into(v)
}

// gain multiplies the constants of a normalization of the last axis.
func (f *folder) gain(n *ir.Node, inputs []int) scaler {
	// Gains of several axes are not one value per channel.
	if axis := n.Int("axis", -1); axis != -1 {
		return nil
	}
	for _, i := range inputs {
		if n.Input(i) != nil && !f.Vector(n, i, f.channels) {
			return nil
		}
	}
	return func(ctx context.Context, by []float64) error {
		for _, i := range inputs {
			if n.Input(i) == nil {
				continue
			}
			if err := f.ScaleVector(ctx, n, i, by); err != nil {
				return err
			}
		}
		return nil
	}
}

// product multiplies one factor: a constant, or the output of a layer.
func (f *folder) product(n *ir.Node) scaler {
	for i := range 2 {
		if f.Vector(n, i, f.channels) {
			return func(ctx context.Context, by []float64) error { return f.ScaleVector(ctx, n, i, by) }
		}
	}
	for i := range 2 {
		// One factor only: scaled at both, channels would have the square.
		if into := f.alone(n.Input(i)); into != nil {
			return into
		}
	}
	return nil
}

// sum multiplies both terms: a constant, and the other at its producer.
func (f *folder) sum(n *ir.Node) scaler {
	for i := range 2 {
		into := f.alone(n.Input(1 - i))
		// Both terms or none: a sum is scaled where all of its terms are.
		if into == nil || !f.Vector(n, i, f.channels) {
			continue
		}
		return func(ctx context.Context, by []float64) error {
			if err := into(ctx, by); err != nil {
				return err
			}
			return f.ScaleVector(ctx, n, i, by)
		}
	}
	return nil
}
