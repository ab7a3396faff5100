package palette

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// Bound is what the stored weight must hold: every element has the nearest entry of its codebook, whatever the codebook
// and the scale are.
func (e *encoding) Bound() *pass.Bound {
	if e.Vector > 1 {
		return e.vectorBound()
	}
	return &pass.Bound{
		Of: e.weight,
		Tensors: func(parts []*ir.Tensor) []*ir.Tensor {
			var ts []*ir.Tensor
			for _, of := range []func(entries []float32, order []int){lowerLimits, upperLimits, ones} {
				with := slices.Clone(parts)
				with[outCodebook] = e.replaced(parts[outCodebook], of)
				ts = append(ts, e.Restore(with))
			}
			return ts
		},
		New: e.newNearestCheck,
	}
}

// replaced is the codebook with other entries for those of each group, whose order is that of their values.
func (e *encoding) replaced(codebook *ir.Tensor, of func(entries []float32, order []int)) *ir.Tensor {
	r := &ir.Recipe{Name: "limits of palette", In: []*ir.Tensor{codebook}, Out: []ir.Spec{codebook.Spec},
		Work: 12 * codebook.Elems()}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		entries := make([]float32, codebook.Elems())
		if err := ir.ReadFull(in[0], kernel.Bytes(entries), 0); err != nil {
			return err
		}
		order := make([]int, e.stored())
		for book := entries; len(book) > 0; book = book[len(order):] {
			// By value: the order of entries is that of the method, and limits are between neighbouring values.
			for i := range order {
				order[i] = i
			}
			slices.SortFunc(order, func(i, j int) int { return cmp.Compare(book[i], book[j]) })
			of(book[:len(order)], order)
		}
		_, err := out[0].Write(kernel.Bytes(entries))
		return err
	}
	return r.Derive()[0]
}

// lowerLimits replaces entries by the middle between each and the next smaller one.
func lowerLimits(entries []float32, order []int) {
	below, at := float32(math.Inf(-1)), float32(math.NaN()) // the next smaller value, and the current one
	for _, i := range order {
		if v := entries[i]; v != at {
			if at == at {
				below = at
			}
			at = v
		}
		entries[i] = below/2 + at/2
	}
}

// upperLimits is lowerLimits upwards.
func upperLimits(entries []float32, order []int) {
	for i := range entries {
		entries[i] = -entries[i]
	}
	slices.Reverse(order)
	lowerLimits(entries, order)
	for i := range entries {
		entries[i] = -entries[i]
	}
}

// ones replaces entries by 1, which is then multiplied by the scales.
func ones(entries []float32, _ []int) {
	for i := range entries {
		entries[i] = 1
	}
}

// A nearestCheck evaluates the bound of one weight.
type nearestCheck struct {
	peak               float32 // the largest magnitude of the weight
	allowed            float32 // how far an element may be beyond the limits of its entry, relative to its scale and peak
	largest            float32 // the magnitude relative to both beyond which all have the same entry
	relative, absolute float32 // rounding of restored elements
	seen               int
}

// newNearestCheck reads the weight for its largest magnitude.
func (e *encoding) newNearestCheck(ctx context.Context, of io.ReaderAt,
	_ func(pass.Reason)) (func(x []float32, y [][]float32) string, error) {
	c := &nearestCheck{allowed: 0x1p-18, largest: float32(math.Inf(1))}
	c.relative, c.absolute = spec.Rounding(e.weight.DType)
	f, x := pass.NewFloats(of, e.weight.DType), make([]float32, min(e.Elems, e.piece()))
	for i := int64(0); i < e.Elems; i += e.piece() {
		x = x[:min(e.piece(), e.Elems-i)]
		if err := f.Read(x, i); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.peak = max(c.peak, math.Float32frombits(kernel.AbsMaxBits(x)))
	}
	switch {
	case e.Block == 0:
	// Assigned by a table of intervals instead of exact limits.
	case e.Entries > kernel.CodebookEntries: // half a cell of the table of entries
		c.allowed, c.largest = 1.01/numSteps, 1
	case e.outputs.channels > 0: // error feedback
		c.allowed += kernel.MaxFeedback
	default: // elements and limits are 16-bit integers, of which 28416 is 1
		c.allowed = 1. / (1 << 14)
	}
	return c.add, nil
}

// add takes elements, and the lower limits, upper limits and scales.
func (c *nearestCheck) add(x []float32, y [][]float32) string {
	for i, v := range x {
		a, b, s := y[0][i], y[1][i], y[2][i]
		if s < 0 {
			a, b, s = b, a, -s
		}
		unit := s * c.peak
		// The block has the scale 0: its elements are below the smallest scale.
		if unit == 0 {
			if max(v, -v) > c.peak*scaleTable().of[1] {
				return fmt.Sprintf("element %d is %g, with the scale 0, and the largest one is %g", c.seen+i, v, c.peak)
			}
			continue
		}
		v = min(max(v, -c.largest*unit), c.largest*unit)
		slack := max(v, -v)*c.relative + c.absolute + c.allowed*unit
		if !(v >= a-slack-max(a, -a)*c.relative && v <= b+slack+max(b, -b)*c.relative) {
			return fmt.Sprintf("element %d is %g, and the limits of its entry are %g and %g", c.seen+i, v, a, b)
		}
	}
	c.seen += len(x)
	return ""
}

// vectorBound is that of vectors of elements: no other entry is nearer. Some entries are tried, those of indices whose
// bits are in equal bytes.
func (e *encoding) vectorBound() *pass.Bound {
	return &pass.Bound{
		Of: e.weight,
		Tensors: func(parts []*ir.Tensor) []*ir.Tensor {
			ts := []*ir.Tensor{e.Restore(parts)}
			for _, b := range []byte{0, 0x55, 0xaa, 0xff} {
				with := slices.Clone(parts)
				with[outIndices] = &ir.Tensor{Spec: parts[outIndices].Spec, Source: ir.Span{R: spec.Repeated(b)}}
				ts = append(ts, e.Restore(with))
			}
			return ts
		},
		New: func(context.Context, io.ReaderAt, func(pass.Reason)) (func(x []float32, y [][]float32) string, error) {
			return (&vectorCheck{size: e.Vector}).add, nil
		},
	}
}

// A vectorCheck evaluates the bound of one weight of vectors.
type vectorCheck struct {
	size, seen int
	sums       []float64 // squared distances of the current vector so far, of each tensor
	norm       float64   // squares of it
}

func (c *vectorCheck) add(x []float32, y [][]float32) string {
	if len(c.sums) < len(y) {
		c.sums = make([]float64, len(y))
	}
	for i, v := range x {
		for k := range y {
			d := float64(v) - float64(y[k][i])
			c.sums[k] += float64(d * d)
		}
		c.norm += float64(v) * float64(v)
		if c.seen++; c.seen%c.size > 0 {
			continue
		}
		least := slices.Min(c.sums[1:])
		// Distances are those of elements relative to the largest one, and rounded restored values.
		if slack := 0x1p-7*math.Sqrt(least*c.norm) + 0x1p-14*(c.norm+least); !(c.sums[0] <= least+slack) {
			return fmt.Sprintf("the vector of element %d has squared distance %g of its entry, and %g of another one",
				c.seen-c.size, c.sums[0], least)
		}
		clear(c.sums)
		c.norm = 0
	}
	return ""
}
