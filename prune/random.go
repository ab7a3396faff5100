package prune

import (
	"flag"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Random zeroes elements drawn by lot, exactly the share asked for: the baseline that other
// methods must beat. The lots depend on the seed, the tensor's name and the element's index
// only; they are computed where they are needed, and no list of them is held.
var Random = &pass.Method{
	Name:    "random",
	Command: "prune",
	Doc:     "zero elements drawn by lot",
	Stage:   pass.Prune,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		m := &random{share: bindShare(fs), embeddings: bindEmbeddings(fs)}
		fs.Uint64Var(&m.seed, "seed", 0, "`number` that the draw starts from")
		return m.run
	},
}

type random struct {
	share      *share
	embeddings *bool
	seed       uint64
}

func (m *random) run(c *pass.Context) error {
	for _, w := range weights(c, *m.embeddings) {
		if err := m.prune(c, w); err != nil {
			return err
		}
	}
	return nil
}

func (m *random) prune(c *pass.Context, w *weight) error {
	n := w.before.Elems()
	k := m.share.of(w.v, w.readers).of(n)
	if k == 0 {
		w.skip(c, none)
		return nil
	}
	if fit, err := w.precheck(c); !fit || err != nil {
		return err
	}
	l := newLots(m.seed, pass.Scope(w.v.Graph()), w.v.Name)
	last, err := l.smallest(c, k, n)
	if err != nil {
		return err
	}
	w.replace(c, fmt.Sprintf("%d of %d elements pruned by lot", k, n), func(in io.ReaderAt) io.ReaderAt {
		return &view{in, w.before.DType.Bits() / 8, func(b []byte, first int64) error {
			if err := finite(b, w.before); err != nil {
				return err
			}
			l.zero(b, w.before.DType, first, last)
			return nil
		}}
	})
	return nil
}

// precheck skips w if it holds NaN or infinities, where the pipeline asks for it beforehand.
// Otherwise its view finds them.
func (w *weight) precheck(c *pass.Context) (fit bool, err error) {
	if !c.Precheck {
		return true, nil
	}
	sound, err := check(c, w.before)
	if err == nil && !sound {
		w.skip(c, unfit)
	}
	return sound, err
}

// finite returns *pass.Unfit if b, elements of t, holds NaN or infinities.
func finite(b []byte, t *ir.Tensor) error {
	if largest(b, t.DType) >= infinity(t.DType) {
		return &pass.Unfit{Tensor: t.Name, Reason: unfit}
	}
	return nil
}
