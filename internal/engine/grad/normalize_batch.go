package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

var batchNorms = []rule{
	{Type: "BatchNormalization", Forward: overBatch, Backward: frozenBatchNorm},
	{Domain: own, Type: "BatchNormTrain", Forward: keepStatistics, Backward: batchNorm},
	{Type: "InstanceNormalization", Backward: instanceNorm},
}

// A RunningStatistic is a running statistic of BatchNormalization, a constant of the model: mean or variance per
// channel. Like a parameter it is an input of the step; after each step the caller replaces it by New.
type RunningStatistic struct {
	Name   string
	Tensor *ir.Tensor // before training
	Value  *ir.Value  // the step's input
	New    *ir.Value  // output: its value after the step
}

// overBatch makes a node normalize with batch statistics, if Options or the node request it.
func overBatch(t *Tape, n *ir.Node) error {
	trained := n.Int("training_mode", 0) != 0 || slices.ContainsFunc(n.Outputs[1:],
		func(v *ir.Value) bool { return v != nil })
	if !trained && !t.batchStatistics {
		return nil
	}
	if !hasChannelStatistics(t, n) || len(n.Outputs) > 3 && slices.ContainsFunc(n.Outputs[3:], isConsumed) {
		return errUnknownForm
	}
	y := make([]*ir.Value, 3)
	copy(y, n.Outputs)
	n.Op = ir.OpID{Domain: own, Type: "BatchNormTrain"}
	// ONNX's outputs 1 and 2 are the updated running statistics, here outputs 3 and 4, after those of
	// the batch that the gradient reads.
	n.SetOutputs(y[0], nil, nil, y[1], y[2])
	if err := keepStatistics(t, n); err != nil {
		return err
	}
	trackStatistic(t, n, 3)
	trackStatistic(t, n, 4)
	return nil
}

// keepStatistics adds all outputs to a node.
func keepStatistics(t *Tape, n *ir.Node) error {
	outs := make([]*ir.Value, 5)
	copy(outs, n.Outputs)
	for i, hint := range []string{"", "mean", "invstd", "new_mean", "new_var"} {
		if outs[i] == nil {
			outs[i] = t.Graph().NewValue(hint)
		}
		if i > 0 {
			t.SetType(outs[i], t.DType(n.Input(0)), t.Shape(n.Input(0))[1])
		}
	}
	n.SetOutputs(outs...)
	return nil
}

// isConsumed reports whether a node consumes v.
func isConsumed(v *ir.Value) bool { return v != nil && len(v.Uses()) > 0 }

// hasChannelStatistics reports whether n has statistics per channel, and inputs of one type.
func hasChannelStatistics(t *Tape, n *ir.Node) bool {
	if len(t.Shape(n.Input(0))) < 2 || n.Int("spatial", 1) == 0 {
		return false
	}
	return !slices.ContainsFunc(n.Inputs(), func(v *ir.Value) bool { return t.DType(v) != t.DType(n.Input(0)) })
}

// trackStatistic makes an input of a running statistic of n. Several nodes update a shared one in order.
func trackStatistic(t *Tape, n *ir.Node, i int) {
	v := n.Input(i)
	if v.Const == nil {
		return
	}
	for r := range t.Running {
		if t.Running[r].Tensor == v.Const {
			// In order: the second node updates what the first one has written.
			n.SetInput(i, t.Running[r].New)
			t.Running[r].New = n.Outputs[i]
			return
		}
	}
	in := t.Input(v.Name, v.Const.DType, v.Const.Shape...)
	n.SetInput(i, in)
	t.Running = append(t.Running, RunningStatistic{v.Name, v.Const, in, n.Outputs[i]})
}

func batchNorm(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	if dy[0] == nil || slices.ContainsFunc(dy[1:], func(v *ir.Value) bool { return v != nil }) {
		return nil, errUnknownForm
	}
	return t.Own("BatchNormGrad", 3, []*ir.Value{n.Input(0), n.Input(1), n.Outputs[1], n.Outputs[2], dy[0]}), nil
}

// frozenBatchNorm is the gradient with frozen statistics. X is only consumed if the scale is trained.
func frozenBatchNorm(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	if !hasChannelStatistics(t, n) {
		return nil, errUnknownForm
	}
	x, scale, dt := n.Input(0), n.Input(1), t.DType(n.Input(0))
	above := t.Op("Add", []*ir.Value{n.Input(4), t.Scalar(dt, float64(n.Float("epsilon", 1e-5)))})
	inv := t.Op("Reciprocal", []*ir.Value{t.Op("Sqrt", []*ir.Value{above})})
	if slices.ContainsFunc(n.Inputs()[1:], t.Needs) {
		dx := t.Own("BatchNormGrad", 3, []*ir.Value{x, scale, n.Input(3), inv, dy[0]}, ir.IntAttr("frozen", 1))
		return append(dx, statisticGradients(t, n, scale, inv, dx)...), nil
	}
	column := []int64{t.Shape(x)[1]}
	for range t.Shape(x)[2:] {
		column = append(column, 1)
	}
	factor := t.Reshape(t.Op("Mul", []*ir.Value{scale, inv}), column)
	return []*ir.Value{t.Op("Mul", []*ir.Value{dy[0], factor})}, nil
}

// statisticGradients returns the gradients of mean and variance if those are computed, from those of scale and shift.
func statisticGradients(t *Tape, n *ir.Node, scale, inv *ir.Value, dx []*ir.Value) []*ir.Value {
	if !t.Needs(n.Input(3)) && !t.Needs(n.Input(4)) {
		return nil
	}
	// With Y = s·(X-μ)·inv + b and inv = 1/√(σ²+ε), the gradient of μ is -s·inv·ΣdY, and that of σ² is
	// -½·s·inv³·ΣdY·(X-μ). The sums are those in the gradients of shift and scale.
	factor := t.Op("Mul", []*ir.Value{scale, inv})
	mean := t.Op("Neg", []*ir.Value{t.Op("Mul", []*ir.Value{dx[2], factor})})
	half := t.Scalar(t.DType(scale), -0.5)
	squared := t.Op("Mul", []*ir.Value{t.Op("Mul", []*ir.Value{factor, inv}), half})
	return []*ir.Value{mean, t.Op("Mul", []*ir.Value{dx[1], squared})}
}

// instanceNorm is the gradient of BatchNormalization with each channel of each instance as a channel. The statistics
// are recomputed.
func instanceNorm(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	x, shape := n.Input(0), t.Shape(n.Input(0))
	if len(shape) < 3 || t.DType(n.Input(1)) != t.DType(x) {
		return nil, errUnknownForm
	}
	all := append([]int64{1, shape[0] * shape[1]}, shape[2:]...)
	rows := t.Reshape(x, all)
	scale := t.Reshape(t.Op("Expand", []*ir.Value{n.Input(1), t.Ints(shape[:2]...)}), all[1:2])
	epsilon := ir.FloatAttr("epsilon", n.Float("epsilon", 1e-5))
	// Only the statistics are consumed, so that any vector serves as the shift.
	stats := t.Own("BatchNormTrain", 3, []*ir.Value{rows, scale, scale}, epsilon)
	each := t.Own("BatchNormGrad", 3, []*ir.Value{rows, scale, stats[1], stats[2], t.Reshape(dy[0], all)})
	dx := []*ir.Value{t.Reshape(each[0], shape)}
	for _, v := range each[1:] {
		v = t.Reshape(v, shape[:2])
		dx = append(dx, t.Op("ReduceSum", []*ir.Value{v, t.Ints(0)}, ir.IntAttr("keepdims", 0)))
	}
	return dx, nil
}
