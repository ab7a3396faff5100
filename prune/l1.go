package prune

import (
	"flag"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/pass"
)

// L1 zeroes the smallest elements of every weight, as torch.nn.utils.prune.l1_unstructured
// does: exactly the share asked for, rounded half to even; of equal magnitudes the lower
// index falls first, and zeros that are there already count as the smallest.
var L1 = &pass.Method{
	Name:    "l1",
	Command: "prune",
	Doc:     "zero the smallest elements of each weight",
	Stage:   pass.Prune,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		m := &l1{share: bindShare(fs), embeddings: bindEmbeddings(fs)}
		return m.run
	},
}

type l1 struct {
	share      *share
	embeddings *bool
}

func bindEmbeddings(fs *flag.FlagSet) *bool {
	return fs.Bool("embeddings", false, "take the tables that Gather looks up in, too")
}

func (m *l1) run(c *pass.Context) error {
	s := &scratch{}
	for _, w := range weights(c, *m.embeddings) {
		if err := m.prune(c, s, w); err != nil {
			return err
		}
	}
	return nil
}

func (m *l1) prune(c *pass.Context, s *scratch, w *weight) error {
	n := w.before.Elems()
	k := m.share.of(w.v, w.readers).of(n)
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
