package ir

import (
	"encoding/binary"
	"io"
)

// An indexSelect payload has entries of one axis of another one: entry i is the source's entry indices[i], or zeros
// where that is negative. Indices ascend.
type indexSelect struct {
	in      io.ReaderAt
	size    int64 // of the source, in bytes
	entry   int64 // bytes of one entry
	n       int64 // entries on the source's axis
	indices []int64
}

// ReadAt may be called by several goroutines at once.
func (p *indexSelect) ReadAt(b []byte, off int64) (int, error) {
	w := &readAhead{in: p.in, size: p.size}
	for done := 0; done < len(b); {
		at, rest := off+int64(done), b[done:]
		var n int64
		var err error
		// Single columns of a weight are entries of a few bytes, for which the search for runs costs more than the
		// copy.
		if p.entry < shortEntry && at%p.entry == 0 && int64(len(rest)) >= p.entry {
			n, err = p.entries(w, rest, at)
		} else {
			n, err = p.piece(w, rest, at)
		}
		if err != nil {
			return done, err
		}
		done += int(n)
	}
	return len(b), nil
}

// shortEntry is the size in bytes below which entries are moved one by one.
const shortEntry = 256

// entries reads whole entries up to the end of a row of them.
func (p *indexSelect) entries(w *readAhead, b []byte, at int64) (n int64, err error) {
	count := int64(len(p.indices))
	row, i := at/p.entry/count*p.n, at/p.entry%count
	for _, index := range p.indices[i:min(count, i+int64(len(b))/p.entry)] {
		dst := b[n : n+p.entry]
		n += p.entry
		if index < 0 {
			clear(dst)
			continue
		}
		src := (row+index)*p.entry - w.at
		if src < 0 || src+p.entry > int64(len(w.buf)) {
			if err := w.fill((row + index) * p.entry); err != nil {
				return 0, err
			}
			src = 0
		}
		move(dst, w.buf[src:src+p.entry])
	}
	return n, nil
}

// move copies one entry; a call of copy costs more than a few bytes.
func move(dst, src []byte) {
	switch len(dst) {
	case 4:
		binary.LittleEndian.PutUint32(dst, binary.LittleEndian.Uint32(src))
	case 2:
		binary.LittleEndian.PutUint16(dst, binary.LittleEndian.Uint16(src))
	default:
		copy(dst, src)
	}
}

// piece reads bytes that are contiguous in the source.
func (p *indexSelect) piece(w *readAhead, b []byte, at int64) (n int64, err error) {
	src, n := p.contiguous(at, int64(len(b)))
	if src < 0 {
		clear(b[:n])
		return n, nil
	}
	return n, w.read(b[:n], src)
}

// contiguous is the offset in the source of the bytes from at on, and how many of them, up to limit, are contiguous
// there.
func (p *indexSelect) contiguous(at, limit int64) (src, n int64) {
	count := int64(len(p.indices))
	outer, i, within := at/p.entry/count, at/p.entry%count, at%p.entry
	index, n := p.indices[i], p.entry-within
	for i++; i < count && n < limit && follows(p.indices[i-1], p.indices[i]); i++ {
		n += p.entry
	}
	if index < 0 {
		return -1, min(n, limit)
	}
	return (outer*p.n+index)*p.entry + within, min(n, limit)
}

func follows(a, b int64) bool { return a < 0 && b < 0 || a >= 0 && b == a+1 }

// aheadBytes is how much is read at once where runs are short.
const aheadBytes = 64 << 10

// A readAhead serves short reads at ascending indices from one buffer.
type readAhead struct {
	in   io.ReaderAt
	size int64
	buf  []byte
	at   int64
}

func (w *readAhead) read(b []byte, off int64) error {
	if len(b) >= aheadBytes {
		return ReadFull(w.in, b, off)
	}
	if off < w.at || off+int64(len(b)) > w.at+int64(len(w.buf)) {
		if err := w.fill(off); err != nil {
			return err
		}
	}
	copy(b, w.buf[off-w.at:])
	return nil
}

// fill reads from off on.
func (w *readAhead) fill(off int64) error {
	if w.buf == nil {
		w.buf = make([]byte, aheadBytes)
	}
	w.at, w.buf = off, w.buf[:min(aheadBytes, w.size-off)]
	if err := ReadFull(w.in, w.buf, off); err != nil {
		w.buf = w.buf[:0]
		return err
	}
	return nil
}

// IndexSelect is the lazy tensor with the given indices of t's axes, in ascending order by axis; nil keeps all of an
// axis, and a negative index is zeros. Rows that are not selected are not read. The type has at least 8 bits.
func IndexSelect(name string, t *Tensor, indices [][]int64) *Tensor {
	out := Spec{Name: t.Name, DType: t.DType, Shape: selectedShape(t.Shape, indices)}
	r := &Recipe{Name: name, In: []*Tensor{t}, Out: []Spec{out}}
	r.View = func(in []io.ReaderAt) io.ReaderAt {
		v, shape := in[0], append([]int64(nil), t.Shape...)
		for k, ps := range indices {
			if ps == nil {
				continue
			}
			bytes := t.DType.Bits() / 8
			// Axis by axis, each a view of the one before.
			v = &indexSelect{v, elems(shape) * bytes, elems(shape[k+1:]) * bytes, shape[k], ps}
			shape[k] = int64(len(ps))
		}
		return v
	}
	return r.Derive()[0]
}

func selectedShape(shape []int64, indices [][]int64) []int64 {
	out := append([]int64(nil), shape...)
	for k, ps := range indices {
		if ps != nil {
			out[k] = int64(len(ps))
		}
	}
	return out
}

func elems(shape []int64) int64 { return Spec{Shape: shape}.Elems() }
