package palette

import (
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

// An encoding is a weight as indices, codebooks and scales.
type encoding struct {
	*Layout
	weight     *ir.Tensor
	importance *importance // nil if all elements are equally important
	outputs    outputs     // of error feedback
	limit      spec.PieceLimit
}

// Bytes is the size of the stored tensors.
func (e *encoding) Bytes() (n int64) {
	for _, s := range e.specs("") {
		n += s.Bytes()
	}
	return n
}

// Recipe computes indices, codebooks and scales. It reads the weight twice, and samples of it for codebooks.
func (e *encoding) Recipe() *ir.Recipe {
	return &ir.Recipe{
		Name: "palette",
		In:   []*ir.Tensor{e.weight},
		Out:  e.specs(e.weight.Name),
		Work: 12*e.chunk() + 24*panelElems + e.tables() + 4*e.outputs.channels,
		Run:  e.run,
	}
}

// tables is about the memory of all codebooks and their lookup tables, which are held where groups alternate.
func (e *encoding) tables() int64 {
	if e.Outer == 1 {
		return e.Groups * int64(e.Entries) * 4
	}
	return e.Groups * 6 << 10
}

// Check finds the codebooks without output, and returns a *pass.Unfit if they do not represent the weight.
func (e *encoding) Check(ctx context.Context, in io.ReaderAt) error {
	_, err := e.observe(ctx, pass.NewFloats(in, e.weight.DType))
	return err
}

// Same reports whether o stores an equal weight in equal values.
func (e *encoding) Same(o spec.Encoding) bool {
	p, ok := o.(*encoding)
	return ok && *e.Layout == *p.Layout && e.importance == p.importance
}

// chunk is the number of elements that are written at a time.
func (e *encoding) chunk() int64 { return min(e.padded(), e.wholeSteps(e.limit.Elems())) }

// wholeSteps is about n elements: whole blocks that fill whole bytes.
func (e *encoding) wholeSteps(n int64) int64 {
	unit, _ := e.unit()
	step := e.step(unit * e.entry())
	return max(1, n/step) * step
}

// piece is about the number of elements that are read at a time, which the L2 cache holds.
func (e *encoding) piece() int64 { return max(1, e.limit.Elems()/8) }

// An observation is what the first reading of a weight finds.
type observation struct {
	peak     float32   // maximum magnitude
	distinct []float32 // its values, ascending, if they fit into a codebook
}

// The maximum magnitude is in this range, so that neither it nor its inverse times a scale overflows.
const smallestPeak, largestPeak = 0x1p-110, 0x1p126

// observe reads the whole weight. A weight that no codebook represents is a *pass.Unfit.
func (e *encoding) observe(ctx context.Context, f *pass.Floats) (observation, error) {
	o, bits, few := observation{}, uint32(0), e.Vector == 1
	buf := make([]float32, min(e.Elems, e.piece()))
	for i := int64(0); i < e.Elems; i += e.piece() {
		x := buf[:min(e.piece(), e.Elems-i)]
		if err := f.Read(x, i); err != nil {
			return o, err
		}
		if err := ctx.Err(); err != nil {
			return o, err
		}
		bits = max(bits, kernel.AbsMaxBits(x))
		// Ends with the first value that no entry is left for, in most weights after a few elements.
		for j := 0; few && j < len(x); j++ {
			if at, found := slices.BinarySearch(o.distinct, x[j]); !found {
				o.distinct = slices.Insert(o.distinct, at, x[j])
				few = len(o.distinct) <= e.Entries
			}
		}
	}
	if reason := spec.NotFinite(bits); !reason.None() {
		return o, &pass.Unfit{Tensor: e.weight.Name, Reason: reason}
	}
	// All values are entries: no scale can fail, not even that of subnormal numbers.
	if few {
		return o, nil
	}
	o.distinct, o.peak = nil, math.Float32frombits(bits)
	if o.peak < smallestPeak || o.peak > largestPeak {
		return o, &pass.Unfit{Tensor: e.weight.Name,
			Reason: pass.Reason{Code: pass.NoScale, Detail: fmt.Sprintf("largest magnitude %g", o.peak)}}
	}
	return o, nil
}

func (e *encoding) run(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	f := pass.NewFloats(in[0], e.weight.DType)
	o, err := e.observe(ctx, f)
	if err != nil {
		return err
	}
	w := &encoder{encoding: e, codebooks: newCodebooks(e, f, o), out: out,
		packed: spec.NewPackedWriter(out[outIndices], int(e.bits()))}
	n := e.chunk()
	w.piece, w.indices = w.newValues(min(n, e.wholeSteps(e.piece()))), make([]byte, n/e.entry())
	if e.Block > 0 {
		// Feedback needs scales, by which its shifts are bounded.
		w.scales, w.feedback = make([]byte, n/e.Block), newBalancer(e, int64(len(w.piece.x))/e.Block)
	}
	// Padding is encoded like elements of value 0, so that bytes after the last element do not depend on memory.
	for i := int64(0); i < e.padded(); i += n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.encode(i, min(n, e.padded()-i)); err != nil {
			return err
		}
	}
	if err := w.packed.Flush(); err != nil {
		return err
	}
	return w.codebooks.writeTo(out[outCodebook])
}

// An encoder assigns the elements of one weight to entries, chunk by chunk.
type encoder struct {
	*encoding
	*codebooks
	out      []io.Writer
	packed   *spec.PackedWriter // of indices
	piece    values
	indices  []byte
	scales   []byte
	feedback *balancer // nil without
}

// encode writes the indices and scales of n elements from first on.
func (w *encoder) encode(first, n int64) error {
	for i := int64(0); i < n; {
		v := w.piece.part(0, min(int64(len(w.piece.x)), n-i))
		if err := w.fill(v, first+i); err != nil {
			return err
		}
		for len(v.x) > 0 {
			c, end, err := w.at(first + i)
			if err != nil {
				return err
			}
			count := min(end-first-i, int64(len(v.x)))
			w.assign(c, v.part(0, count), i, first+i)
			v, i = v.part(count, int64(len(v.x))), i+count
		}
	}
	if w.Block > 0 {
		if _, err := w.out[outScales].Write(w.scales[:max(0, min(n, w.whole()-first))/w.Block]); err != nil {
			return err
		}
	}
	return w.packed.Write(w.indices[:n/w.entry()])
}

// fill reads elements from first on. Those after the last one are zeros.
func (w *encoder) fill(v values, first int64) error {
	held := min(int64(len(v.x)), max(0, w.Elems-first))
	clear(v.x[held:])
	return w.read(v.part(0, held), first)
}

// assign finds the scales of v, which begins at element i of the chunk and at first of the weight, and the entries of c
// that are nearest.
func (w *encoder) assign(c *codebook, v values, i, first int64) {
	indices, block := w.indices[i/w.entry():][:int64(len(v.x))/w.entry()], int(w.Block)
	var scales []byte
	if block > 0 {
		scales = w.scales[i/w.Block:][:len(v.x)/block]
	}
	// Scales of vectors are those of their largest elements: the search of better ones knows entries of single
	// elements only.
	if c.vectors != nil {
		if block > 0 {
			w.magnitudes(scales, v.x, block)
			w.divide(v.x, scales)
		}
		c.vectors.assign(indices, v.x)
		return
	}
	if block == 0 || w.exact {
		for i, x := range v.x {
			indices[i] = byte(c.nearest(x))
		}
		for b := range scales {
			scales[b] = largest // the scale 1
		}
		return
	}
	w.magnitudes(scales, v.x, block)
	// Scales first, then entries at these scales: error feedback shifts elements by a part of their scale.
	w.search(scales, v, block, c)
	if w.feedback != nil && c.kernel != nil {
		w.feedback.assign(c.kernel, indices, v.x, scales, first)
		return
	}
	c.assign(indices, v.x, scales, block)
}
