package float

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// A rangeCount counts the elements of a weight out of the type's range.
type rangeCount struct {
	maxBits               uint32 // of the maximum magnitude
	overflows, underflows int64  // elements that would become infinite, or zero though they are not
	finite                int64  // of the overflows
}

// unfit is the reason why the type does not represent a weight with these values.
func (w *Converter) unfit(s rangeCount) pass.Reason {
	size := math.Float32frombits(s.maxBits)
	switch {
	case s.maxBits >= spec.InfBits:
		return spec.NotFinite(s.maxBits)
	case s.maxBits >= w.Overflow && !w.Clamp:
		return pass.Reason{Code: pass.NotRepresented,
			Detail: fmt.Sprintf("largest magnitude %g, range of %s ±%g", size, w.DType, w.largest) + number(s.overflows,
				"beyond it")}
	case s.maxBits > 0 && s.maxBits < w.minNormal:
		smallest := math.Float32frombits(w.minNormal)
		return pass.Reason{Code: pass.NotRepresented,
			Detail: fmt.Sprintf("largest magnitude %g, smallest normal %s %g", size, w.DType, smallest) + number(s.underflows,
				"rounded to zero")}
	}
	return pass.Reason{}
}

// number is the number of elements that were counted; empty for none.
func number(n int64, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d elements %s", n, what)
}

// count adds x to s.
func (w *Converter) count(s *rangeCount, x []float32) {
	bits := kernel.AbsMaxBits(x)
	s.maxBits = max(s.maxBits, bits)
	// The largest magnitude rules both out for nearly all blocks; small elements beside large ones may become zero, as
	// they do by rounding.
	if bits < w.Overflow && bits >= w.minNormal {
		return
	}
	for _, v := range x {
		switch b := math.Float32bits(v) &^ (1 << 31); {
		case b >= w.Overflow:
			s.overflows++
			if b < spec.InfBits {
				s.finite++
			}
		case b != 0 && w.underflows(v):
			s.underflows++
		}
	}
}

// underflows reports whether x rounds to zero.
func (w *Converter) underflows(x float32) bool {
	var h [1]uint16
	w.write(h[:], []float32{x})
	return h[0]&0x7fff == 0
}

// scan reads t and counts.
func (w *Converter) scan(ctx context.Context, step *pass.Step, t *ir.Tensor) (rangeCount, error) {
	var s rangeCount
	err := pass.Scan(ctx, step.Eval, t, func(x []float32, _ int64) error {
		w.count(&s, x)
		return nil
	})
	return s, err
}

// recipe converts t; a limit above 0 replaces larger finite values.
func (w *Converter) recipe(t *ir.Tensor, limit float32, infinite bool) *ir.Recipe {
	return &ir.Recipe{
		Name: w.DType.String(),
		In:   []*ir.Tensor{t},
		Out:  []ir.Spec{{Name: t.Name, DType: w.DType, Shape: t.Shape}},
		Work: ir.CopyBuffer * 3 / 2,
		Run: func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			x := make([]float32, min(t.Elems(), pass.Block))
			half := make([]uint16, len(x))
			f := pass.NewFloats(in[0], t.DType)
			var bits uint32
			for i := int64(0); i < t.Elems(); i += pass.Block {
				n := min(pass.Block, t.Elems()-i)
				if err := f.Read(x[:n], i); err != nil {
					return err
				}
				if limit > 0 {
					w.clampTo(limit, x[:n])
				}
				now := kernel.AbsMaxBits(x[:n])
				bits = max(bits, now)
				if now >= w.Overflow && !(infinite && now == spec.InfBits) {
					// At the first block: nothing of a weight that does not fit is needed.
					return &pass.Unfit{Tensor: t.Name, Reason: w.unfit(rangeCount{maxBits: now})}
				}
				w.write(half[:n], x[:n])
				if _, err := out[0].Write(kernel.Bytes(half[:n])); err != nil {
					return err
				}
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			// Known at the end only: a weight all of whose elements are subnormal in the type would lose most of their
			// bits.
			if reason := w.unfit(rangeCount{maxBits: bits}); !reason.None() && bits < w.minNormal {
				return &pass.Unfit{Tensor: t.Name, Reason: reason}
			}
			return nil
		},
	}
}

// clampTo clamps finite values beyond the range to the limit.
func (w *Converter) clampTo(limit float32, x []float32) {
	if kernel.AbsMaxBits(x) < w.Overflow {
		return
	}
	for i, v := range x {
		// Infinities stay: they are errors of the weight, or meant.
		if b := math.Float32bits(v) &^ (1 << 31); b >= w.Overflow && b < spec.InfBits {
			x[i] = float32(math.Copysign(float64(limit), float64(v)))
		}
	}
}
