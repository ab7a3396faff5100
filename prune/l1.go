package prune

import (
	"fmt"
	"io"

	"github.com/mcompress/mcompress/pass"
)

// L1 zeroes the smallest elements of every weight, as torch.nn.utils.prune.l1_unstructured
// does: exactly the share asked for, rounded half to even; of equal magnitudes the lower
// index falls first, and zeros that are there already count as the smallest.
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
	s := &scratch{}
	for _, w := range weights(c, o.Embeddings) {
		if err := o.prune(c, s, w); err != nil {
			return err
		}
	}
	return nil
}

func (o L1) prune(c *pass.Context, s *scratch, w *weight) error {
	n := w.before.Elems()
	k := o.Fraction.of(w.v, w.consumers).of(n)
	if k == 0 {
		w.skip(c, none)
		return nil
	}
	p, err := newPool(c, s, w.before)
	if err != nil {
		return err
	}
	t, err := p.threshold(k)
	if err != nil {
		return err
	}
	if !p.sound() {
		w.skip(c, unfit)
		return nil
	}
	w.cut(c, p.cuts(t)[0], fmt.Sprintf("%d of %d elements pruned, the largest of them %.4g", k, n, p.value(t)))
	return nil
}

// none is why a weight is left alone of which the amount is too little for one element.
const none = "the amount comes to none of its elements"

// cut replaces w by what cut leaves of it.
func (w *weight) cut(c *pass.Context, cut cut, reason string) {
	w.replace(c, reason, func(in io.ReaderAt) io.ReaderAt { return cut.view(in, w.before.DType) })
}
