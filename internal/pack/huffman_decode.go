package pack

import (
	"encoding/binary"
	"math/bits"

	"github.com/klauspost/compress/fse"

	"github.com/mcompress/mcompress/internal/kernel"
)

// readWeights reads the weights at the front of in, fills the tables and returns the rest of in.
func (h *huffmanCoder) readWeights(in []byte) ([]byte, error) {
	if len(in) == 0 {
		return nil, errHuffman
	}
	n, size := int(in[0])-127, 0
	in = in[1:]
	clear(h.weights[:])
	if n > 0 {
		if size = (n + 1) / 2; size > len(in) {
			return nil, errHuffman
		}
		for s := range n {
			h.weights[s] = in[s/2] >> (4 - 4*(s%2)) & 15
		}
	} else {
		if size = n + 127; size > len(in) {
			return nil, errHuffman
		}
		h.fse.DecompressLimit = 255
		weights, err := fse.Decompress(in[:size], &h.fse)
		if err != nil || len(weights) > 255 {
			return nil, errHuffman
		}
		n = copy(h.weights[:], weights)
	}
	return in[size:], h.tables(n)
}

// tables completes the weights by that of symbol last, so that all codes are used, and fills the tables.
func (h *huffmanCoder) tables(last int) error {
	total := 0
	for _, w := range h.weights[:last] {
		if w > maxBits {
			return errHuffman
		}
		total += 1 << w >> 1
	}
	most := bits.Len(uint(total)) // bits of the longest code
	// The weight of the last symbol is not stored: it completes the sum to a power of two (RFC 8878, section
	// 4.2.1).
	rest := 1<<most - total
	if total == 0 || most > maxBits || rest&(rest-1) != 0 {
		return errHuffman
	}
	h.weights[last] = byte(bits.Len(uint(rest)))
	next, wider := starts(h.weights[:]), maxBits-most
	for s, w := range h.weights[:last+1] {
		if w == 0 {
			continue
		}
		width := 1 << (int(w) - 1 + wider)
		part := h.single[next[w]<<wider:][:width]
		for i := range part {
			part[i] = uint16(s) | uint16(most+1-int(w))<<8
		}
		next[w] += 1 << (w - 1)
	}
	h.join()
	return nil
}

// join fills the table of several symbols: of one or two first, and then of two of those if both fit. Conditions are
// moves, not jumps.
func (h *huffmanCoder) join() {
	const mask = 1<<maxBits - 1
	for i, code := range &h.single {
		first := oneSymbol(code)
		second := oneSymbol(h.single[i<<(first&15)&mask])
		if first&255+second&255 > maxBits {
			second = 0
		}
		h.pairs[i] = first + second&0xffff + second>>16<<24
	}
	for i, first := range &h.pairs {
		at := i << (first & 15) & mask
		second := h.pairs[at]
		if first&255+second&255 > maxBits {
			second = oneSymbol(h.single[at])
		}
		if first&255+second&255 > maxBits {
			second = 0
		}
		h.table[i] = uint64(first&0xffff+second&0xffff) | uint64(first>>16|second&0xffff0000)<<32
	}
}

// oneSymbol is the form in pairs of a symbol and its bits.
func oneSymbol(code uint16) uint32 { return uint32(code>>8) | 1<<8 | uint32(code&255)<<16 }

// decode fills out with the symbols of in.
func (h *huffmanCoder) decode(out, in []byte) error {
	in, err := h.readWeights(in)
	if err != nil {
		return err
	}
	if len(in) < sizes {
		return errHuffman
	}
	var s kernel.HuffmanStreams
	each, rest := (len(out)+streams-1)/streams, in[sizes:]
	for i := range streams {
		size := len(rest)
		if i < streams-1 {
			size = int(binary.LittleEndian.Uint16(in[2*i:]))
		}
		if size == 0 || size > len(rest) || rest[size-1] == 0 {
			return errHuffman
		}
		s.In[i], s.Out[i] = rest[:size], out[min(i*each, len(out)):min((i+1)*each, len(out))]
		s.Left[i] = 8*size - 9 + bits.Len8(rest[size-1]) // after the highest 1
		rest = rest[size:]
	}
	kernel.DecodeHuffman(&s, &h.table)
	// DecodeHuffman leaves the last symbols of each stream, as it loads 8 bytes and stores several symbols at a
	// time.
	for i := range streams {
		if !h.finish(s.Out[i][s.Done[i]:], s.In[i], s.Left[i]) {
			return errHuffman
		}
	}
	return nil
}

// finish decodes the remaining symbols of a stream one by one. It reports whether the stream has exactly as many.
func (h *huffmanCoder) finish(out, in []byte, left int) bool {
	for i := range out {
		var next [8]byte // the last bytes that are left
		at := (left + 7) / 8
		copy(next[8-min(at, 8):], in[max(0, at-8):at])
		s := h.single[binary.LittleEndian.Uint64(next[:])<<(uint(-left)&7)>>(64-maxBits)]
		if left -= int(s >> 8); left < 0 {
			return false
		}
		out[i] = byte(s)
	}
	return left == 0
}
