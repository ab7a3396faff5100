package sparse

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math/bits"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// blockElems is how many elements are handled at a time: a multiple of 8, so that
// blocks begin at whole bytes of a mask.
const blockElems = 1 << 17

// splitWork is what split and join hold of 8-byte elements: the dense block, its
// values, and 8-byte positions.
const splitWork = 4 * 8 * blockElems

// eachBlock reads the dense tensor block by block. data is what is read, with the
// element that is not stored turned into zero; mask has a bit for each other element.
func (t tensor) eachBlock(ctx context.Context, in io.ReaderAt, do func(data, mask []byte, first int64) error) error {
	n, size := t.Elems(), t.size()
	buf, masks := make([]byte, min(n, blockElems)*size), make([]byte, blockElems/8)
	for first := int64(0); first < n; first += blockElems {
		if err := ctx.Err(); err != nil {
			return err
		}
		count := min(n-first, blockElems)
		data, mask := buf[:count*size], masks[:(count+7)/8]
		if err := ir.ReadFull(in, data, first*size); err != nil {
			return err
		}
		t.normalize(data)
		kernel.NonZero(mask, data, int(size))
		if err := do(data, mask, first); err != nil {
			return err
		}
	}
	return nil
}

// normalize makes the element that is not stored zero in b: -0.0, which weights times a mask have, is equal to it.
func (t tensor) normalize(b []byte) {
	if t.DType.IsFloat() {
		kernel.PositiveZeros(b, int(t.size()))
	}
	xor(b, t.fill)
}

// xor turns fill into zero, and zero into fill.
func xor(b []byte, fill byte) {
	if fill == 0 {
		return
	}
	for i := range b {
		b[i] ^= fill
	}
}

// ones ranges over the set bits of mask.
func ones(mask []byte) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		at := 0
		for ; at+8 <= len(mask); at += 8 {
			for w := binary.LittleEndian.Uint64(mask[at:]); w != 0; w &= w - 1 {
				if !yield(int64(8*at + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
		for ; at < len(mask); at++ {
			for b := mask[at]; b != 0; b &= b - 1 {
				if !yield(int64(8*at + bits.TrailingZeros8(b))) {
					return
				}
			}
		}
	}
}

// An indexer appends to bufs the positions of a block's values. The block's elements are
// first and the count-1 following ones; mask marks the values among them.
type indexer func(bufs [][]byte, mask []byte, first, count int64)

// split writes the values to out[0], after one element that is not stored where lead
// is set, and their positions by index to the others.
func (t tensor) split(ctx context.Context, in io.ReaderAt, out []io.Writer, lead bool, index indexer) error {
	if lead {
		if _, err := out[0].Write(t.element()); err != nil {
			return err
		}
	}
	var values []byte
	bufs := make([][]byte, len(out)-1)
	return t.eachBlock(ctx, in, func(data, mask []byte, first int64) error {
		// Values are those that are not zero after the exchange; the second exchange gives them their own bits.
		values = kernel.Compress(values[:0], data, int(t.size()))
		xor(values, t.fill)
		if _, err := out[0].Write(values); err != nil {
			return err
		}
		index(bufs, mask, first, int64(len(data))/t.size())
		for i, b := range bufs {
			if _, err := out[1+i].Write(b); err != nil {
				return err
			}
			bufs[i] = b[:0]
		}
		return nil
	})
}

// A marker sets the bits of the values among the count elements from first on, in a
// clear mask, and returns how many they are.
type marker func(mask []byte, first, count int64) (int64, error)

// join undoes split: it writes the dense tensor from the values and their marks.
func (t tensor) join(ctx context.Context, values io.ReaderAt, out io.Writer, lead bool, mark marker) error {
	n, size, used := t.Elems(), t.size(), int64(0)
	buf, masks, vals := make([]byte, min(n, blockElems)*size), make([]byte, blockElems/8),
		make([]byte, min(n, blockElems)*size)
	skip := int64(0)
	if lead {
		skip = size
	}
	for first := int64(0); first < n; first += blockElems {
		if err := ctx.Err(); err != nil {
			return err
		}
		count := min(n-first, blockElems)
		mask := masks[:(count+7)/8]
		clear(mask)
		k, err := mark(mask, first, count)
		if err != nil {
			return err
		}
		if used+k > t.nnz {
			return errors.New("there are more positions than values")
		}
		if err := ir.ReadFull(values, vals[:k*size], skip+used*size); err != nil {
			return err
		}
		used += k
		// Expand fills with zeros: between both exchanges zero is the element that is not stored.
		xor(vals[:k*size], t.fill)
		kernel.Expand(buf[:count*size], mask, vals[:k*size], int(size))
		xor(buf[:count*size], t.fill)
		if _, err := out.Write(buf[:count*size]); err != nil {
			return err
		}
	}
	// Both directions are checked, as parts of files of others need not fit each other.
	if used < t.nnz {
		return errors.New("there are more values than positions")
	}
	return nil
}

// A numbers reads little-endian integers of one size in order.
type numbers struct {
	r      io.ReaderAt
	size   int64
	off    int64
	unread int64 // not read into buf yet
	buf    []byte
}

// numbersAtOnce is how many are read at a time.
const numbersAtOnce = 16 << 10

func newNumbers(r io.ReaderAt, s ir.Spec) *numbers {
	return &numbers{r: r, size: s.DType.Bits() / 8, unread: s.Elems()}
}

// next is the next number; ok is false after the last.
func (x *numbers) next() (v int64, ok bool, err error) {
	if len(x.buf) == 0 {
		if x.unread == 0 {
			return 0, false, nil
		}
		if err := x.load(); err != nil {
			return 0, false, err
		}
	}
	b := x.buf
	x.buf = b[x.size:]
	switch x.size {
	case 1:
		return int64(b[0]), true, nil
	case 2:
		return int64(binary.LittleEndian.Uint16(b)), true, nil
	case 4:
		return int64(binary.LittleEndian.Uint32(b)), true, nil
	}
	return int64(binary.LittleEndian.Uint64(b)), true, nil
}

func (x *numbers) load() error {
	n := min(x.unread, numbersAtOnce)
	x.buf = make([]byte, n*x.size)
	if err := ir.ReadFull(x.r, x.buf, x.off); err != nil {
		return err
	}
	x.off += n * x.size
	x.unread -= n
	return nil
}

// appendNumber appends v in the size of dt.
func appendNumber(b []byte, dt ir.DType, v int64) []byte {
	switch dt.Bits() {
	case 8:
		return append(b, byte(v))
	case 16:
		return binary.LittleEndian.AppendUint16(b, uint16(v))
	case 32:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(b, uint64(v))
}

// markPositions is a marker of ascending positions: next gives one after the other.
func markPositions(n int64, next func() (pos int64, ok bool, err error)) marker {
	pending, last := int64(-1), int64(-1)
	return func(mask []byte, first, count int64) (set int64, err error) {
		for {
			if pending < 0 {
				pos, ok, err := next()
				if err != nil || !ok {
					return set, err
				}
				if pos <= last || pos >= n {
					return 0, errors.New("positions do not ascend within the shape")
				}
				pending, last = pos, pos
			}
			if pending >= first+count {
				return set, nil
			}
			at := pending - first
			mask[at/8] |= 1 << (at % 8)
			set++
			pending = -1
		}
	}
}
