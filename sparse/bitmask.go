package sparse

import (
	"context"
	"io"
	"math/bits"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Bitmask stores one bit for every element, and the values.
type Bitmask struct {
	pass.Selection
}

var bitmaskMethod = method("bitmask", "values and one bit for every element: best around one half zeros",
	func() pass.Options {
		return &Bitmask{}
	})

// Method describes the method.
func (Bitmask) Method() *pass.Method { return bitmaskMethod }

// Run implements pass.Options.
func (Bitmask) Run(ctx context.Context, s *pass.Step) error {
	return (&sparsifier{forms: []sizer{newBitmask}}).sparsify(ctx, s)
}

// A bitmask's payload starts with the element that is not stored: positions without a
// value gather that one, so that no type needs a Where.
type bitmask struct{ tensor }

func newBitmask(m statistics, _ int64) (layout, string) { return bitmask{m.tensor}, "" }

func (bitmask) form() pass.Form { return pass.Bitmask }
func (bitmask) sums() bool      { return true }
func (bitmask) label() string   { return "bitmask" }
func (bitmask) work() int64     { return splitWork }
func (l bitmask) opset() int64  { return l.since(11, 13) }

func (l bitmask) parts() []part {
	return []part{
		{pass.Payload, ir.Spec{DType: l.DType, Shape: []int64{1 + l.nnz}}},
		{pass.Indices, ir.Spec{DType: ir.Uint8, Shape: []int64{(l.Elems() + 7) / 8}}},
	}
}

func (l bitmask) build(b *builder, parts []*ir.Tensor) *ir.Value {
	flags := b.unpack(b.part(parts[1]), 1, l.Elems())
	return b.reshape(b.pick(b.part(parts[0]), flags), l.Shape...)
}

func (l bitmask) encode(ctx context.Context, in io.ReaderAt, out []io.Writer) error {
	return l.split(ctx, in, out, true, func(bufs [][]byte, mask []byte, _, _ int64) {
		bufs[0] = append(bufs[0], mask...)
	})
}

func (l bitmask) decode(ctx context.Context, in []io.ReaderAt, out io.Writer) error {
	return l.join(ctx, in[0], out, true, func(mask []byte, first, count int64) (set int64, err error) {
		if err := ir.ReadFull(in[1], mask, first/8); err != nil {
			return 0, err
		}
		if count%8 != 0 {
			// Bits after the last element may be set in files of others.
			mask[len(mask)-1] &= 1<<(count%8) - 1
		}
		for _, b := range mask {
			set += int64(bits.OnesCount8(b))
		}
		return set, nil
	})
}

func findBitmask(ctx context.Context, f *finder, v *ir.Value) (layout, []*ir.Tensor) {
	picked, shape := f.reshapeInput(v)
	payload := f.constant(input(picked, "Gather", 0))
	flags := input(input(picked, "Gather", 1), "Mul", 1)
	packed := f.constant(input(packedOf(flags), "Cast", 0))
	if payload == nil || packed == nil {
		return nil, nil
	}
	t := tensor{Spec: ir.Spec{DType: payload.DType, Shape: shape}, nnz: payload.Elems() - 1}
	var ok bool
	if t.fill, ok = f.firstFill(ctx, payload); !ok {
		return nil, nil
	}
	return bitmask{t}, []*ir.Tensor{payload, packed}
}

// packedOf is the cast that unpack starts with.
func packedOf(unpacked *ir.Value) *ir.Value {
	if whole := input(unpacked, "Slice", 0); whole != nil {
		unpacked = whole
	}
	return input(input(input(input(unpacked, "Reshape", 0), "Mod", 0), "Div", 0), "Reshape", 0)
}
