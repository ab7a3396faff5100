package distill

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// A batchNormStat is a running mean or variance of BatchNormalization. Training updates it without a gradient.
type batchNormStat struct {
	name    string
	tensor  *ir.Tensor // before training
	array   *ir.Array
	initial float32 // with --reinit: 0 for a mean, 1 for a variance
}

// describeStats returns the running statistics that a training graph updates, without the data of their arrays.
func describeStats(t *grad.Tape) []*batchNormStat {
	var out []*batchNormStat
	for _, r := range t.Running {
		s := &batchNormStat{name: r.Name, tensor: r.Tensor, array: withoutData(r.Tensor.Spec)}
		if slices.ContainsFunc(r.Value.Uses(), func(u ir.Use) bool { return u.Index == varianceInput }) {
			s.initial = 1
		}
		out = append(out, s)
	}
	return out
}

// varianceInput is the index of BatchNormalization's input var.
const varianceInput = 4

func (s *batchNormStat) reinit() {
	for i := range ir.View[float32](s.array) {
		ir.View[float32](s.array)[i] = s.initial
	}
}

// feedStats replaces the statistics' constants in an inference graph by inputs with their current values.
func (ps *parameters) feedStats(tape *grad.Tape, feeds map[string]*ir.Array) {
	for _, v := range tape.Graph().Consts() {
		s := ps.stat(v.Const)
		if s == nil {
			continue
		}
		in := tape.Input(s.name, s.array.DType, s.array.Shape...)
		feeds[in.Name] = s.array
		for _, u := range v.Uses() {
			if u.Node != nil {
				u.Node.SetInput(u.Index, in)
			}
		}
	}
}
