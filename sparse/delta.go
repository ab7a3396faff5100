package sparse

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Delta stores the distance from each value to the next in 4, 8 or 16 bits.
type Delta struct {
	pass.Selection
}

var deltaMethod = method("delta", "values and the gaps between them, in 4, 8 or 16 bits", func() pass.Options {
	return &Delta{}
})

// Method describes the method.
func (Delta) Method() *pass.Method { return deltaMethod }

// Run implements pass.Options.
func (Delta) Run(ctx context.Context, s *pass.Step) error {
	return (&sparsifier{forms: []sizer{newDelta}}).sparsify(ctx, s)
}

// gapWidths are the widths a gap may be stored in, in bits.
var gapWidths = [...]int64{4, 8, 16}

// A delta is a stream of codes: each advances the position, which starts at -1, and a
// value is there; code 0 is an escape that advances by the largest code, to where
// no value is. With escapes the payload starts with the element that is not stored,
// which they gather.
type delta struct {
	tensor
	width   int64
	codes   int64
	escapes bool
	dtype   ir.DType // Uint8, where width is 4, is two codes a byte, the lower first
}

// uint4Opset is the first one that has uint4. Its payload is packed as ours is.
const uint4Opset = 21

func newDelta(m statistics, version int64) (layout, string) {
	var best delta
	for i, w := range gapWidths {
		d := delta{tensor: m.tensor, width: w, codes: m.nnz + m.escapes[i], escapes: m.escapes[i] > 0}
		switch {
		case w == 16:
			d.dtype = ir.Uint16
		case w == 4 && version >= uint4Opset:
			d.dtype = ir.Uint4
		default:
			d.dtype = ir.Uint8
		}
		// By the bytes of values and codes alone: graphs of the widths differ by a few nodes. Of equal ones the narrower
		// width.
		if best.width == 0 || bytesIn(d) < bytesIn(best) {
			best = d
		}
	}
	return best, ""
}

func (delta) form() pass.Form { return pass.Delta }
func (delta) sums() bool      { return true }
func (l delta) label() string { return fmt.Sprint("delta", l.width) }
func (delta) work() int64     { return splitWork }
func (l delta) opset() int64 {
	if l.dtype == ir.Uint4 {
		return uint4Opset
	}
	return l.since(11, 20)
}

// advance is the advance of an escape.
func (l delta) advance() int64 { return 1<<l.width - 1 }

func (l delta) parts() []part {
	payload, codes := l.nnz, l.codes
	if l.escapes {
		payload++
	}
	if l.isPacked() {
		codes = (codes + 1) / 2
	}
	return []part{
		{pass.Payload, ir.Spec{DType: l.DType, Shape: []int64{payload}}},
		{pass.Indices, ir.Spec{DType: l.dtype, Shape: []int64{codes}}},
	}
}

func (l delta) isPacked() bool { return l.width == 4 && l.dtype == ir.Uint8 }

func (l delta) build(b *builder, parts []*ir.Tensor) *ir.Value {
	payload, codes := b.part(parts[0]), b.part(parts[1])
	var gaps *ir.Value
	if l.isPacked() {
		gaps = b.unpack(codes, 4, l.codes)
	} else {
		gaps = b.cast(codes, ir.Int32)
	}
	values := payload
	if l.escapes {
		// Cast to bool and back makes 1 of each code but an escape.
		values = b.pick(payload, b.cast(b.cast(gaps, ir.Bool), ir.Int32))
		escape := b.op("Equal", []*ir.Value{gaps, b.int32(0)})
		gaps = b.op("Where", []*ir.Value{escape, b.int32(l.advance()), gaps})
	}
	// Positions begin at -1, so that the gap to a value at position 0 is 1 and not the code of an escape.
	positions := b.op("Sub", []*ir.Value{b.cumSum(gaps), b.int32(1)})
	return b.scatter(l.tensor, positions, values)
}

func (l delta) encode(ctx context.Context, in io.ReaderAt, out []io.Writer) error {
	e := &gapEncoder{delta: l, last: -1}
	return l.split(ctx, in, out, l.escapes, e.block)
}

// A gapEncoder turns positions into codes.
type gapEncoder struct {
	delta
	last   int64 // where the codes so far lead
	values int64 // seen so far
	wrote  int64 // codes
	half   byte  // a code that waits for the other half of its byte
}

func (e *gapEncoder) block(bufs [][]byte, mask []byte, first, count int64) {
	buf := bufs[0]
	for i := range ones(mask) {
		buf = e.escape(buf, first+i)
		buf = e.put(buf, first+i-e.last)
		e.last = first + i
		e.values++
	}
	// Escapes that any value after this block needs are written with it, so that a
	// long run of zeros does not pile up.
	if e.values < e.nnz {
		buf = e.escape(buf, first+count)
	}
	bufs[0] = buf
}

// escape leads to where one code reaches to.
func (e *gapEncoder) escape(buf []byte, to int64) []byte {
	for ; to-e.last > e.advance(); e.last += e.advance() {
		buf = e.put(buf, 0)
	}
	return buf
}

func (e *gapEncoder) put(buf []byte, code int64) []byte {
	e.wrote++
	if e.width != 4 {
		return appendNumber(buf, e.dtype, code)
	}
	if e.wrote%2 == 1 {
		if e.wrote == e.codes { // the last one has no other half
			return append(buf, byte(code))
		}
		e.half = byte(code)
		return buf
	}
	return append(buf, e.half|byte(code)<<4)
}

func (l delta) decode(ctx context.Context, in []io.ReaderAt, out io.Writer) error {
	spec := l.parts()[1].Spec
	if l.width == 4 {
		spec = ir.Spec{DType: ir.Uint8, Shape: []int64{spec.Bytes()}}
	}
	d := &gapDecoder{delta: l, in: newNumbers(in[1], spec), pos: -1}
	return l.join(ctx, in[0], out, l.escapes, markPositions(l.Elems(), d.next))
}

// A gapDecoder turns codes into positions.
type gapDecoder struct {
	delta
	in   *numbers
	read int64
	byte int64 // of which the second code is still to come
	pos  int64
}

// next is the position of the next value.
func (d *gapDecoder) next() (int64, bool, error) {
	for {
		code, ok, err := d.code()
		if err != nil || !ok {
			return 0, false, err
		}
		if code != 0 {
			d.pos += code
			return d.pos, true, nil
		}
		if !d.escapes {
			return 0, false, fmt.Errorf("gap %d is zero", d.read-1)
		}
		d.pos += d.advance()
	}
}

func (d *gapDecoder) code() (code int64, ok bool, err error) {
	if d.read == d.codes {
		return 0, false, nil
	}
	d.read++
	if d.width != 4 {
		return d.in.next()
	}
	if d.read%2 == 0 {
		return d.byte >> 4, true, nil
	}
	d.byte, ok, err = d.in.next()
	return d.byte & 15, ok, err
}

func findDelta(ctx context.Context, f *finder, v *ir.Value) (layout, []*ir.Tensor) {
	s := f.scatteringOf(ctx, v)
	if s == nil {
		return nil, nil
	}
	l := delta{tensor: s.tensor}
	payload, gaps := s.values, input(input(s.positions, "Sub", 0), "CumSum", 0)
	if picked := input(s.values, "Gather", 0); picked != nil {
		// Gather is there for escapes only.
		l.escapes, payload, gaps = true, picked, input(gaps, "Where", 2)
	}
	codes := input(gaps, "Cast", 0)
	if codes == nil {
		codes = input(packedOf(gaps), "Cast", 0)
		l.width = 4
	}
	p, q := f.constant(payload), f.constant(codes)
	if p == nil || q == nil {
		return nil, nil
	}
	l.DType, l.dtype, l.nnz, l.codes = p.DType, q.DType, p.Elems(), q.Elems()
	if l.escapes {
		// The element that escapes gather is no value.
		l.nnz--
	}
	switch {
	case l.width == 4:
		// Of an odd number of codes the last byte has a half that a Slice removes.
		l.codes = f.sliceLength(gaps, 2*l.codes)
	case slices.Contains([]ir.DType{ir.Uint4, ir.Uint8, ir.Uint16}, l.dtype):
		l.width = l.dtype.Bits()
	default:
		return nil, nil
	}
	return l, []*ir.Tensor{p, q}
}
