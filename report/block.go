package report

import (
	"bytes"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A block holds elements as they are stored and as floats; for float32 both are the
// same memory.
type block struct {
	dt   ir.DType
	size int // bytes of an element
	raw  []byte
	x    []float32 // nil for types that are not compared as numbers

	source bytes.Reader // of raw
	values *pass.Floats // what it reads
}

func newBlock(dt ir.DType, n int64) *block {
	b := &block{dt: dt, size: int(dt.Bits() / 8)}
	if numeric(dt) {
		b.x = make([]float32, n)
	}
	if dt == ir.Float {
		b.raw = kernel.Bytes(b.x)
		return b
	}
	b.raw = make([]byte, n*int64(b.size))
	b.values = pass.NewFloats(&b.source, dt)
	return b
}

// floats are the elements of raw, which is b.raw or memory that is aligned like it.
func (b *block) floats(raw []byte) ([]float32, error) {
	x := b.x[:len(raw)/b.size]
	switch b.dt {
	case ir.Float:
		return kernel.Words[float32](raw), nil
	case ir.Int8, ir.Uint8:
		kernel.Dequantize(x, raw, b.dt == ir.Int8, 1, 0)
		return x, nil
	}
	b.source.Reset(raw)
	return x, b.values.Read(x, 0)
}

// numeric reports whether elements of type dt are compared by value.
func numeric(dt ir.DType) bool { return dt.IsFloat() || dt == ir.Int8 || dt == ir.Uint8 }

// wholeBytes reports whether elements of type dt take whole bytes and can be counted and
// compared.
func wholeBytes(dt ir.DType) bool {
	b := dt.Bits()
	return b == 8 || b == 16 || b == 32 || b == 64
}
