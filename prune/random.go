package prune

import (
	"context"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Random zeroes randomly drawn elements, the baseline of other methods. The draw depends on the seed, the tensor's name
// and the element's index only; it is computed where it is needed, and no list of it is held.
type Random struct {
	pass.Selection
	// Amount is the fraction of the elements of each weight that is pruned, above 0 up to 1, or None; 0 is the default.
	Amount Amount `flag:"amount" default:"0.5" usage:"'fraction' of the elements that is pruned, from 0 to 1"`
	// Amounts are other fractions for some weights, from 0 to 1.
	Amounts Amounts `flag:"amounts" list:"yes" usage:"other fractions by glob over the names of tensors, nodes and modules, as 'pattern=fraction',...; the last match counts"`
	// Embeddings prunes tables that Gather looks up, too.
	Embeddings bool `flag:"embeddings" usage:"prune tables that Gather looks up, too"`
	// Biases prunes the biases of layers, too.
	Biases bool `flag:"biases" usage:"prune biases, too"`
	// Seed chooses the elements.
	Seed uint64 `flag:"seed" usage:"'number' that the draw starts from"`
}

var randomMethod = &pass.Method{
	Name:    "random",
	Command: "prune",
	Doc:     "zero randomly drawn elements",
	Stage:   pass.Prune,
	New:     func() pass.Options { return &Random{} },
}

// Method describes the method.
func (Random) Method() *pass.Method { return randomMethod }

// Check reports amounts that are not fractions.
func (o Random) Check() error { return o.fraction().check() }

func (o Random) fraction() fraction { return fraction{o.Amount, o.Amounts} }

// Run implements pass.Options.
func (o Random) Run(ctx context.Context, s *pass.Step) error {
	for _, w := range weightsAndBiases(s, o.Embeddings, o.Biases) {
		if err := o.prune(ctx, s, w); err != nil {
			return err
		}
	}
	return nil
}

func (o Random) prune(ctx context.Context, s *pass.Step, w *weight) error {
	n := w.before.Elems()
	k := o.fraction().count(w.v, w.consumers, n)
	if k == 0 {
		w.skip(s, roundsToZero)
		return nil
	}
	if fit, err := w.precheck(ctx, s); !fit || err != nil {
		return err
	}
	l := newScores(o.Seed, pass.Scope(w.v.Graph()), w.v.Name)
	last, err := l.smallest(ctx, s, k, n)
	if err != nil {
		return err
	}
	note := pass.Reason{Code: pass.Pruned, Detail: fmt.Sprintf("%d of %d elements at random", k, n)}
	w.replace(s, note, func(in io.ReaderAt) io.ReaderAt {
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

// precheck skips w if it holds NaN or infinities, where the pipeline checks values beforehand.
// Otherwise its view finds them.
func (w *weight) precheck(ctx context.Context, s *pass.Step) (fit bool, err error) {
	if !s.Env.Precheck {
		return true, nil
	}
	sound, err := check(ctx, s, w.before)
	if err == nil && !sound {
		w.skip(s, notFinite)
	}
	return sound, err
}

// finite returns *pass.Unfit if b, elements of t, holds NaN or infinities.
func finite(b []byte, t *ir.Tensor) error {
	if largest(b, t.DType) >= infinity(t.DType) {
		return &pass.Unfit{Tensor: t.Name, Reason: notFinite}
	}
	return nil
}
