package prune

import (
	"fmt"
	"io"

	"github.com/mcompress/mcompress/pass"
)

// L1 zeroes the smallest elements of every weight (unstructured magnitude pruning), as torch.nn.utils.prune.l1_unstructured
// does: exactly the given fraction, rounded half to even. Of equal magnitudes the lower index is pruned first; existing
// zeros are the smallest elements.
type L1 struct {
	pass.Selection
	Fraction
	Embeddings bool `flag:"embeddings" usage:"prune tables that Gather looks up, too"`
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

// Run implements pass.Options.
func (o L1) Run(c *pass.Context) error {
	s := &buffers{}
	for _, w := range weights(c, o.Embeddings) {
		if err := o.prune(c, s, w); err != nil {
			return err
		}
	}
	return nil
}

func (o L1) prune(c *pass.Context, s *buffers, w *weight) error {
	n := w.before.Elems()
	k := o.Fraction.of(w.v, w.consumers).of(n)
	if k == 0 {
		w.skip(c, roundsToZero)
		return nil
	}
	p, err := newRanking(c, s, w.before)
	if err != nil {
		return err
	}
	t, err := p.threshold(k)
	if err != nil {
		return err
	}
	if !p.isFinite() {
		w.skip(c, pass.Reason{Code: pass.NotFinite})
		return nil
	}
	w.applyMask(c, p.masks(t)[0], pass.Reason{Code: pass.Pruned, Detail: fmt.Sprintf("%d of %d elements, the largest %.4g", k, n, p.value(t))})
	return nil
}

// roundsToZero is the reason of weights with too few elements for the amount.
var roundsToZero = pass.Reason{Code: pass.RoundsToZero, Detail: "elements"}

// applyMask zeroes the elements of w that m masks.
func (w *weight) applyMask(c *pass.Context, cut mask, note pass.Reason) {
	w.replace(c, note, func(in io.ReaderAt) io.ReaderAt { return cut.view(in, w.before.DType) })
}
