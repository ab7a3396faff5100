package distill

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A rewinding keeps the weights of an early step of the first training, and restores those of them that are not pruned
// before each later training, which repeats the rest of the first one: its learning rates and its order of samples
// (Frankle et al., Stabilizing the Lottery Ticket Hypothesis, 2019, arXiv:1903.01611, section 3).
type rewinding struct {
	epoch int               // of the first training, after which weights are kept
	early map[string][]byte // weights and running statistics by name; nil until the first training has ended
}

// firstStep returns the first step of a training. r may be nil.
func (r *rewinding) firstStep(stepsPerEpoch int) int {
	if r == nil || r.early == nil {
		return 0
	}
	return r.epoch * stepsPerEpoch
}

// keepEarly writes a snapshot of the weights at the step of the first training to which they are rewound. r may be nil.
func (r *rewinding) keepEarly(params *parameters, folder string, step, perEpoch int) error {
	// Of the first training alone: all later ones rewind to the same weights.
	if r == nil || r.early != nil || step != r.epoch*perEpoch {
		return nil
	}
	return params.writeTo(earlyFile(folder))
}

func earlyFile(folder string) string { return filepath.Join(folder, "early") }

// readEarly reads the snapshot of the first training, which has ended after total steps, and restores the weights that
// it keeps. r may be nil.
func (r *rewinding) readEarly(v *validation, total, perEpoch int) error {
	if r == nil || r.early != nil {
		return nil
	}
	if r.epoch*perEpoch >= total {
		return pass.OptionErrorf("--rewind-epoch %d: the training has %d steps, and an epoch %d", r.epoch, total, perEpoch)
	}
	params := v.graphs.params
	if err := params.readFrom(earlyFile(v.graphs.folder)); err != nil {
		return err
	}
	r.early = map[string][]byte{}
	for _, p := range params.weights {
		r.early[p.name] = bytes.Clone(p.array.Data)
	}
	for _, s := range params.stats {
		r.early[s.name] = bytes.Clone(s.array.Data)
	}
	// The snapshot was read into the arrays of the weights.
	return v.restoreBest()
}

// restore replaces the weights of a pruned model by the early ones; elements that are 0 in the pruned ones stay 0. r
// may be nil.
func (r *rewinding) restore(ctx context.Context, step *pass.Step, pruned map[string]bool) error {
	if r == nil || r.early == nil {
		return nil
	}
	for _, v := range step.Model.Graph.Consts() {
		early := r.early[v.Name]
		if early == nil {
			continue
		}
		now, err := step.Eval.ReadAll(ctx, v.Const)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", v.Name, err)
		}
		a := &ir.Array{DType: v.Const.DType, Shape: v.Const.Shape}
		zero(a)
		copy(a.Data, early)
		// Zeros of weights that were never pruned are values like others.
		if pruned[v.Name] {
			keepZeros(ir.View[float32](a), ir.View[float32](&ir.Array{DType: a.DType, Shape: a.Shape, Data: now}))
		}
		replace(step, v, ir.Mem(a.Data))
	}
	return nil
}

// keepZeros zeroes the elements of w that are zero in pruned.
func keepZeros(w, pruned []float32) {
	for i, x := range pruned {
		if x == 0 {
			w[i] = 0
		}
	}
}
