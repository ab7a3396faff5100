package prune

import (
	"context"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/pass"
)

// L1 zeroes the smallest elements of every weight (unstructured magnitude pruning), as
// torch.nn.utils.prune.l1_unstructured does: exactly the given fraction, rounded half to even. Of equal magnitudes the
// lower index is pruned first; existing zeros are the smallest elements.
type L1 struct {
	pass.Selection
	// Amount is the fraction of the elements of each weight that is pruned, above 0 up to 1, or None; 0 is the default.
	Amount Amount `flag:"amount" default:"0.5" usage:"'fraction' of the elements that is pruned, from 0 to 1"`
	// Amounts are other fractions for some weights, from 0 to 1.
	Amounts Amounts `flag:"amounts" list:"yes" usage:"other fractions by glob over the names of tensors, nodes and modules, as 'pattern=fraction',...; the last match counts"`
	// Embeddings prunes tables that Gather looks up, too.
	Embeddings bool `flag:"embeddings" usage:"prune tables that Gather looks up, too"`
	// Biases prunes the biases of layers, too.
	Biases bool `flag:"biases" usage:"prune biases, too"`
}

var l1Method = &pass.Method{
	Name:    "l1",
	Command: "prune",
	Doc:     "zero the smallest elements of each weight",
	Stage:   pass.Prune,
	New:     func() pass.Options { return &L1{} },
}

// Method describes the method.
func (L1) Method() *pass.Method { return l1Method }

// Check reports amounts that are not fractions.
func (o L1) Check() error { return o.fraction().check() }

func (o L1) fraction() fraction { return fraction{o.Amount, o.Amounts} }

// Run implements pass.Options.
func (o L1) Run(ctx context.Context, step *pass.Step) error {
	s := &buffers{}
	for _, w := range weightsAndBiases(step, o.Embeddings, o.Biases) {
		if err := o.prune(ctx, step, s, w); err != nil {
			return err
		}
	}
	return nil
}

func (o L1) prune(ctx context.Context, step *pass.Step, s *buffers, w *weight) error {
	n := w.before.Elems()
	k := o.fraction().count(w.v, w.consumers, n)
	if k == 0 {
		w.skip(step, roundsToZero)
		return nil
	}
	p, err := newRanking(ctx, step, s, w.before)
	if err != nil {
		return err
	}
	t, err := p.threshold(ctx, k)
	if err != nil {
		return err
	}
	if !p.isFinite() {
		w.skip(step, notFinite)
		return nil
	}
	w.applyMask(step, p.masks(t)[0], pass.Reason{Code: pass.Pruned,
		Detail: fmt.Sprintf("%d of %d elements, the largest %.4g", k, n, p.value(t))})
	return nil
}

// roundsToZero is the reason of weights with too few elements for the amount.
var roundsToZero = pass.Reason{Code: pass.RoundsToZero, Detail: "elements"}

// applyMask zeroes the elements of w that m masks.
func (w *weight) applyMask(s *pass.Step, cut mask, note pass.Reason) {
	w.replace(s, note, func(in io.ReaderAt) io.ReaderAt { return cut.view(in, w.before.DType) })
}
