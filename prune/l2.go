package prune

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// L2 zeroes the output channels of smallest L2 norm, as ln_structured of torch.nn.utils.prune does along the output
// axis: columns of a right operand, filters of a convolution, gate rows of a recurrent layer, entries of an embedding.
// Shapes do not change. Of equal norms the lower channel is pruned first.
//
// Norms are sums of squares in float64, added in the order of the payload.
type L2 struct {
	pass.Selection
	// Amount is the fraction of the output channels of each weight that is pruned, above 0 up to 1, or None; 0 is the
	// default.
	Amount Amount `flag:"amount" default:"0.5" usage:"'fraction' of the elements that is pruned, from 0 to 1"`
	// Amounts are other fractions for some weights, from 0 to 1.
	Amounts Amounts `flag:"amounts" list:"yes" usage:"other fractions by glob over the names of tensors, nodes and modules, as 'pattern=fraction',...; the last match counts"`
	// Embeddings prunes tables that Gather looks up, too.
	Embeddings bool `flag:"embeddings" usage:"prune tables that Gather looks up, too"`
}

var l2Method = &pass.Method{
	Name:    "l2",
	Command: "prune",
	Doc:     "zero the output channels of smallest L2 norm in each weight",
	Stage:   pass.Prune,
	New:     func() pass.Options { return &L2{} },
}

// Method describes the method.
func (L2) Method() *pass.Method { return l2Method }

// Check reports amounts that are not fractions.
func (o L2) Check() error { return o.fraction().check() }

func (o L2) fraction() fraction { return fraction{o.Amount, o.Amounts} }

// Run implements pass.Options.
func (o L2) Run(ctx context.Context, step *pass.Step) error {
	return pruneParts(ctx, step, weights(step, o.Embeddings), o.choose)
}

// channels are a weight's output channels and those that are pruned.
type channels struct {
	wholeParts
	axis  span  // within one batch
	batch int64 // elements of one batch
}

func (ch *channels) detail() string {
	return fmt.Sprintf("%d of %d output channels", ch.count, len(ch.pruned))
}

func (o L2) choose(ctx context.Context, step *pass.Step, s *buffers, w *weight) (*channels, error) {
	type layer struct {
		axis    span
		batches int64
	}
	g, reason := common(w, func(l layout) layer { return layer{l.axisOf(out), l.batches()} })
	if !reason.None() {
		return &channels{wholeParts: wholeParts{trouble: reason}}, nil
	}
	g.axis.outer /= g.batches
	n := g.batches * g.axis.n
	ch := &channels{axis: g.axis, batch: w.before.Elems() / g.batches}
	ch.count = o.fraction().count(w.v, w.consumers, n)
	if ch.count == 0 {
		ch.trouble = pass.Reason{Code: pass.RoundsToZero, Detail: fmt.Sprintf("%d output channels", n)}
		return ch, nil
	}
	sums := make([]float64, n)
	sound, err := ch.measure(ctx, step, s, w.before, sums)
	if !sound {
		ch.trouble = notFinite
	}
	ch.pruned = smallest(sums, ch.count)
	return ch, err
}

// measure adds the squares of t's elements to its channels' sums.
func (ch *channels) measure(ctx context.Context, step *pass.Step, s *buffers, t *ir.Tensor,
	sums []float64) (sound bool, err error) {
	p, err := newRanking(ctx, step, s, t)
	if err != nil {
		return false, err
	}
	err = p.blocks(ctx, 0, p.total(), func(k keys, at int64) error {
		switch k := k.(type) {
		case *narrowKeys:
			addSquares(ch, k.x, at, sums)
		case *wideKeys:
			addSquares(ch, k.x, at, sums)
		}
		return nil
	})
	return p.isFinite(), err
}

func addSquares[T float32 | float64](ch *channels, x []T, first int64, sums []float64) {
	ch.runs(first, int64(len(x)), func(channel, step, from, to int64) {
		if step == 1 {
			row := sums[channel : channel+to-from]
			for i, v := range x[from:to] {
				row[i] += float64(float64(v) * float64(v)) // converted, so that no CPU fuses it with the sum
			}
			return
		}
		s := sums[channel]
		for _, v := range x[from:to] {
			s += float64(float64(v) * float64(v))
		}
		sums[channel] = s
	})
}

// runs cuts n elements from first on into runs from..to, whose first element belongs to the
// given channel: all of them if step is 0, else each further one to the next channel.
func (ch *channels) runs(first, n int64, do func(channel, step, from, to int64)) {
	a := ch.axis
	at := first / a.inner % a.n               // the channel within the batch
	row := first % ch.batch / (a.inner * a.n) // the place on the axes before it
	base := first / ch.batch * a.n            // the first channel of the batch
	left, step := a.inner-first%a.inner, int64(0)
	for from := int64(0); from < n; {
		if a.inner == 1 {
			left, step = a.n-at, 1
		}
		to := min(from+left, n)
		do(base+at, step, from, to)
		at += max(1, step*(to-from))
		from, left = to, a.inner
		if at == a.n {
			at = 0
			if row++; row == a.outer {
				row, base = 0, base+a.n
			}
		}
	}
}

// smallest marks the k smallest numbers; of equal ones those of lower index.
func smallest(x []float64, k int64) []bool {
	marked := make([]bool, len(x))
	if k == 0 {
		return marked
	}
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	limit, ties := sorted[k-1], k
	for _, v := range sorted[:k] {
		if v < limit {
			ties--
		}
	}
	for i, v := range x {
		if marked[i] = v < limit || v == limit && ties > 0; v == limit {
			ties--
		}
	}
	return marked
}

// zero zeroes the pruned channels; see view.
func (ch *channels) zero(dt ir.DType) func(b []byte, first int64) error {
	return func(b []byte, first int64) error {
		switch dt.Bits() {
		case 16:
			zeroChannels(ch, kernel.Words[uint16](b), first)
		case 64:
			zeroChannels(ch, kernel.Words[uint64](b), first)
		default:
			zeroChannels(ch, kernel.Words[uint32](b), first)
		}
		return nil
	}
}

func zeroChannels[T uint16 | uint32 | uint64](ch *channels, x []T, first int64) {
	ch.runs(first, int64(len(x)), func(channel, step, from, to int64) {
		if step == 0 && ch.pruned[channel] {
			clear(x[from:to])
		}
		if step == 0 {
			return
		}
		for i, zeroed := range ch.pruned[channel : channel+to-from] {
			if zeroed {
				x[from+int64(i)] = 0
			}
		}
	})
}
