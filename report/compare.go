package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// An Error compares a weight after compression with the original. Numbers are absent where they
// are infinite or undefined: SQNR of an exact copy, all of NaN.
type Error struct {
	Exact  bool     `json:"exact"` // every element is equal
	SQNR   *float64 `json:"sqnr_db,omitempty"`
	Cosine *float64 `json:"cosine,omitempty"`
	Max    *float32 `json:"max_abs,omitempty"`
}

// compareBlock is the number of elements that are compared at a time: one block of float32 of each tensor fits into a
// core's second-level cache.
const compareBlock = 1 << 15

// compare streams both tensors of p once, holding four blocks of compareBlock elements. It adds their elements to bins,
// if there are any.
func compare(ctx context.Context, e *ir.Eval, p pair, bins *binners) (Figures, error) {
	if !slices.Equal(p.ref.Shape, p.got.Shape) {
		return Figures{}, fmt.Errorf("%s cannot be compared with %s", p.got.Spec, p.ref.Spec)
	}
	ref, err := e.Open(ctx, p.ref)
	if err != nil {
		return Figures{}, err
	}
	n := min(p.ref.Elems(), compareBlock)
	c := &comparer{
		pair: p,
		bins: bins,
		file: ref,
		same: true,
		mask: make([]byte, (n+7)/8),
		gots: newBlock(p.got.DType, n),
	}
	if p.ref != p.got {
		c.refs = newBlock(p.ref.DType, n)
	}
	if err := stream(ctx, e, p.got, c); err != nil {
		return Figures{}, err
	}
	if err := c.flush(); err != nil {
		return Figures{}, err
	}
	return c.figures(), nil
}

// stream writes t's payload to w. A recipe is run directly, so that a dense tensor
// that only the comparison needs is never spooled.
func stream(ctx context.Context, e *ir.Eval, t *ir.Tensor, w io.Writer) error {
	o, ok := t.Source.(ir.Output)
	if !ok {
		r, err := e.Open(ctx, t)
		if err != nil {
			return err
		}
		return ir.Copy(ctx, w, r, t.Bytes())
	}
	outs := make([]io.Writer, len(o.Of.Out))
	for i := range outs {
		outs[i] = io.Discard
	}
	outs[o.Index] = w
	return e.Run(ctx, o.Of, outs)
}

// A comparer is a writer of one tensor that reads the other one in the same fixed
// blocks, so that its sums depend on the elements alone. float64 is compared after
// rounding to float32.
type comparer struct {
	pair
	bins       *binners // nil without histograms
	file       io.ReaderAt
	refs, gots *block // refs is nil where only zeros are counted
	mask       []byte

	fill  int   // bytes of gots that are written
	first int64 // element that gots starts at
	ones  int64 // elements that are not zero
	were  int64 // those of the reference
	same  bool  // all bytes so far are equal
	sums  kernel.ErrorSums
}

func (c *comparer) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		// Without a copy where what is written is a whole block.
		if whole := len(c.gots.raw); c.fill == 0 && len(p) >= whole && kernel.Aligned(p, int64(c.gots.size)) {
			if err := c.block(p[:whole]); err != nil {
				return 0, err
			}
			p = p[whole:]
			continue
		}
		k := copy(c.gots.raw[c.fill:], p)
		p, c.fill = p[k:], c.fill+k
		if c.fill == len(c.gots.raw) {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// flush adds the block in gots to the sums.
func (c *comparer) flush() error {
	raw := c.gots.raw[:c.fill]
	c.fill = 0
	return c.block(raw)
}

// block adds the next elements of got to the sums.
func (c *comparer) block(raw []byte) error {
	n := len(raw) / c.gots.size
	if n == 0 {
		return nil
	}
	c.ones += nonZero(c.mask, raw, c.gots)
	if c.refs != nil {
		if err := c.add(raw, n); err != nil {
			return err
		}
	}
	c.first += int64(n)
	return nil
}

func (c *comparer) add(got []byte, n int) error {
	ref := c.refs.raw[:n*c.refs.size]
	if err := ir.ReadFull(c.file, ref, c.first*int64(c.refs.size)); err != nil {
		return err
	}
	c.were += nonZero(c.mask, ref, c.refs)
	c.same = c.same && c.refs.dt == c.gots.dt && bytes.Equal(ref, got)
	if !numeric(c.refs.dt) || !numeric(c.gots.dt) {
		return nil
	}
	x, err := c.refs.floats(ref)
	if err != nil {
		return err
	}
	y, err := c.gots.floats(got)
	if err != nil {
		return err
	}
	c.sums.Add(x, y)
	if c.bins != nil {
		c.bins.add(x, y)
	}
	return nil
}

// nonZero is the number of elements of raw, a part of b, that are not zero: -0.0, as symmetric quantization gives for
// negative weights, is.
func nonZero(mask, raw []byte, b *block) int64 {
	n := len(raw) / b.size
	ones := kernel.NonZero(mask[:(n+7)/8], raw, b.size)
	if b.dt.IsFloat() {
		ones -= kernel.NegativeZeros(raw, b.size)
	}
	return int64(ones)
}

func (c *comparer) figures() Figures {
	var f Figures
	n := c.got.Elems()
	if n > 0 {
		sparsity := round(float64(n-c.ones)/float64(n), 6)
		f.Sparsity = &sparsity
	}
	f.is = zeros{n - c.ones, n}
	if f.was = f.is; c.refs == nil {
		return f
	}
	f.was = zeros{n - c.were, n}
	if !numeric(c.refs.dt) || !numeric(c.gots.dt) {
		if c.refs.dt == c.gots.dt {
			f.Error = &Error{Exact: c.same}
		}
		return f
	}
	// Different float64 may be equal as float32: then only equal bytes are exact.
	rounded := c.refs.dt == ir.Double || c.gots.dt == ir.Double
	f.Error = errorOf(c.sums, c.same || !rounded && c.sums.Err2 == 0)
	return f
}

// errorOf rounds to digits that do not depend on the CPU.
func errorOf(s kernel.ErrorSums, exact bool) *Error {
	e := &Error{Exact: exact}
	if db := 10 * math.Log10(s.Ref2/s.Err2); finite(db) {
		db = round(db, 3)
		e.SQNR = &db
	}
	if cos := s.Dot / math.Sqrt(s.Ref2*s.Got2); finite(cos) {
		// Rounding errors of the sums may give a little more than 1.
		cos = round(min(cos, 1), 9)
		e.Cosine = &cos
	}
	if finite(float64(s.MaxErr)) {
		e.Max = &s.MaxErr
	}
	return e
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
