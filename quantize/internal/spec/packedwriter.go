package spec

import (
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A PackedWriter writes values of 2, 4, 6 or 8 bits without gaps, the lowest bits of a byte first. It is the only
// writer of such values: a tensor is written in pieces, and the bits of a piece that do not fill its last byte belong
// to the same byte as the first ones of the next.
type PackedWriter struct {
	w       io.Writer
	bits    int
	pending []byte // values after the last whole unit
}

// NewPackedWriter returns a writer of values of so many bits to w.
func NewPackedWriter(w io.Writer, bits int) *PackedWriter {
	return &PackedWriter{w: w, bits: bits}
}

// unit is the least number of values that fill whole bytes.
func (p *PackedWriter) unit() int {
	if p.bits == 6 {
		return 4
	}
	return 8 / p.bits
}

// Write writes values, one in a byte. It packs them in place: their memory is overwritten.
func (p *PackedWriter) Write(values []byte) error {
	if len(p.pending) > 0 {
		// Values of the piece before come first: a piece that did not fill its last byte once shifted everything after
		// it.
		n := min(p.unit()-len(p.pending), len(values))
		p.pending, values = append(p.pending, values[:n]...), values[n:]
		if len(p.pending) < p.unit() {
			return nil
		}
		if err := p.Flush(); err != nil {
			return err
		}
	}
	whole := len(values) / p.unit() * p.unit()
	p.pending = append(p.pending, values[whole:]...)
	if whole == 0 {
		return nil
	}
	_, err := p.w.Write(pack(values[:whole], p.bits))
	return err
}

// Flush writes the values that do not fill a byte, followed by zeros. It ends a tensor.
func (p *PackedWriter) Flush() error {
	if len(p.pending) == 0 {
		return nil
	}
	// Four values of 6 bits are three bytes, packed as one unit.
	for p.bits == 6 && len(p.pending) < p.unit() {
		p.pending = append(p.pending, 0)
	}
	_, err := p.w.Write(pack(p.pending, p.bits))
	p.pending = p.pending[:0]
	return err
}

// pack packs values in place.
func pack(values []byte, bits int) []byte {
	switch bits {
	case 8:
		return values
	case 6:
		for i, at := 0, 0; i < len(values); i, at = i+4, at+3 {
			v := uint32(values[i]) | uint32(values[i+1])<<6 | uint32(values[i+2])<<12 | uint32(values[i+3])<<18
			values[at], values[at+1], values[at+2] = byte(v), byte(v>>8), byte(v>>16)
		}
		return values[:len(values)/4*3]
	}
	packed := values[:kernel.Packed(len(values), bits)]
	kernel.Pack(packed, values, bits)
	return packed
}
