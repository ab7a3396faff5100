package pack

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/klauspost/compress/fse"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Huffman codes of at most maxBits bits in four streams, as the literals of RFC 8878 (Zstandard), section 4.2.
const (
	maxBits = kernel.HuffmanBits
	streams = 4
	sizes   = 2 * (streams - 1) // bytes of the sizes of the streams but the last
)

var errHuffman = errors.New("malformed Huffman code")

// A huffmanCoder has the memory of Huffman codes.
type huffmanCoder struct {
	counts  [4][256]uint32
	codes   [256]uint32          // code<<8 + bits
	weights [256]byte            // of symbols: 0 if unused, or 1 + maximum number of bits - bits
	paired  [1 << 16]uint32      // the codes of two symbols, by the first one + the second one<<8
	leaves  [maxBits][512]uint16 // of lengths: by level, the leaves among the first items
	items   [2][512]uint32
	fse     fse.Scratch
	single  [1 << maxBits]uint16 // symbol and bits<<8, by the next bits
	pairs   [1 << maxBits]uint32 // one or two symbols, as in table
	table   kernel.HuffmanTable
}

// encode appends the code of in, which has at least two symbols, to dst. It reports false if a table cannot be stored.
func (h *huffmanCoder) encode(dst, in []byte) ([]byte, bool) {
	symbols := h.assign(in)
	dst, ok := h.appendWeights(dst, int(slices.Max(symbols)))
	if !ok {
		return dst, false
	}
	table, paired := len(dst), h.pair(symbols, len(in))
	dst = append(dst, make([]byte, sizes)...)
	each := (len(in) + streams - 1) / streams
	for i := range streams {
		part := in[min(i*each, len(in)):min((i+1)*each, len(in))]
		start := len(dst)
		dst = h.appendStream(dst, part, paired)
		if i < streams-1 {
			binary.LittleEndian.PutUint16(dst[table+2*i:], uint16(len(dst)-start))
		}
	}
	return dst, true
}

// assign computes the codes of the symbols of in, and returns the symbols.
func (h *huffmanCoder) assign(in []byte) (symbols []byte) {
	count := h.count(in)
	for s := range count {
		if count[s] > 0 {
			symbols = append(symbols, byte(s))
		}
	}
	// Stable, so that equal counts are in the order of symbols: the code depends on the content alone.
	slices.SortStableFunc(symbols, func(a, b byte) int { return cmp.Compare(count[a], count[b]) })
	lengths := h.lengths(symbols, count)
	clear(h.weights[:])
	for i, s := range symbols {
		h.weights[s] = lengths[0] + 1 - lengths[i]
	}
	next := starts(h.weights[:])
	for s, w := range h.weights {
		if w > 0 {
			// Canonical codes: of equal weights in the order of symbols, so that the weights suffice to restore them.
			h.codes[s] = uint32(next[w]>>(w-1))<<8 | uint32(lengths[0]+1-w)
			next[w] += 1 << (w - 1)
		}
	}
	return symbols
}

// count counts the symbols of in, in four tables, so that equal symbols do not wait for each other.
func (h *huffmanCoder) count(in []byte) *[256]uint32 {
	clear(h.counts[:])
	a, b, c, d := &h.counts[0], &h.counts[1], &h.counts[2], &h.counts[3]
	for ; len(in) >= 8; in = in[8:] {
		x := binary.LittleEndian.Uint64(in)
		a[byte(x)]++
		b[byte(x>>8)]++
		c[byte(x>>16)]++
		d[byte(x>>24)]++
		a[byte(x>>32)]++
		b[byte(x>>40)]++
		c[byte(x>>48)]++
		d[byte(x>>56)]++
	}
	for _, s := range in {
		a[s]++
	}
	for s := range a {
		a[s] += b[s] + c[s] + d[s]
	}
	return a
}

// lengths returns the bits of the codes of symbols, which are sorted by their count: the least total with at most
// maxBits bits, by the package-merge algorithm (Larmore and Hirschberg, A fast algorithm for optimal length-limited
// Huffman codes, 1990).
func (h *huffmanCoder) lengths(symbols []byte, count *[256]uint32) (lengths [256]byte) {
	n := len(symbols)
	var items []uint32
	// Each level merges the leaves, by count, with the pairs of the level before. leaves keeps how many leaves are
	// among the first items, from which the lengths follow backwards.
	for level := range maxBits {
		leaf, leaves, merged := 0, &h.leaves[level], h.items[level%2][:0]
		for i := 0; leaf < n || i+1 < len(items); {
			if i+1 >= len(items) || leaf < n && count[symbols[leaf]] <= items[i]+items[i+1] {
				merged = append(merged, count[symbols[leaf]])
				leaf++
			} else {
				merged = append(merged, items[i]+items[i+1])
				i += 2
			}
			leaves[len(merged)] = uint16(leaf)
		}
		items = merged
	}
	// The first 2n-2 items of the last level are chosen. Each leaf among them adds a bit to its symbol, each pair
	// chooses two items of the level before.
	for level, first := maxBits-1, 2*n-2; first > 0; level-- {
		leaves := int(h.leaves[level][first])
		for i := range leaves {
			lengths[i]++
		}
		first = 2 * (first - leaves)
	}
	return lengths
}

// starts returns the first place of each weight in a table of all codes, which is sorted by weight.
func starts(weights []byte) (next [maxBits + 2]int) {
	for _, w := range weights {
		if w > 0 {
			next[w+1] += 1 << (w - 1)
		}
	}
	for w := range maxBits {
		next[w+1] += next[w]
	}
	return next
}

// appendWeights appends the weights of all symbols before last, by FSE if that is shorter.
func (h *huffmanCoder) appendWeights(dst []byte, last int) ([]byte, bool) {
	// The largest table that RFC 8878, section 4.2.1.2, allows for weights.
	h.fse.TableLog = 6
	if code, err := fse.Compress(h.weights[:last], &h.fse); err == nil && len(code) < min(128, (last+1)/2) {
		return append(append(dst, byte(len(code))), code...), true
	}
	// The direct form has no more than 128 weights.
	if last > 128 {
		return dst, false
	}
	dst = append(dst, byte(127+last))
	for s := 0; s < last; s += 2 {
		next := byte(0)
		if s+1 < last {
			next = h.weights[s+1]
		}
		dst = append(dst, h.weights[s]<<4|next)
	}
	return dst, true
}

// pair fills the table of the codes of pairs of symbols, for n symbols in all. It reports false if that takes more time
// than it saves.
func (h *huffmanCoder) pair(symbols []byte, n int) bool {
	if len(symbols)*len(symbols) > n {
		return false
	}
	for _, second := range symbols {
		row, c := h.paired[int(second)<<8:][:256], h.codes[second]
		for _, first := range symbols {
			f := h.codes[first]
			row[first] = (f>>8<<(c&15)|c>>8)<<8 | (f+c)&255
		}
	}
	return true
}

// appendStream appends the codes of in, from the last symbol to the first, and a 1.
func (h *huffmanCoder) appendStream(dst, in []byte, paired bool) []byte {
	at := len(dst)
	dst = slices.Grow(dst, len(in)*maxBits/8+16)
	dst = dst[:cap(dst)]
	code, n := uint64(0), uint64(0)
	for ; len(in) >= 4; in = in[:len(in)-4] { // up to 7 + 44 bits
		x := binary.LittleEndian.Uint32(in[len(in)-4:])
		if paired {
			c, d := uint64(h.paired[x>>16]), uint64(h.paired[x&0xffff])
			code |= c >> 8 << (n & 63)
			n += c & 255
			code |= d >> 8 << (n & 63)
			n += d & 255
		} else {
			for range 4 {
				c := uint64(h.codes[x>>24])
				code |= c >> 8 << (n & 63)
				n += c & 255
				x <<= 8
			}
		}
		binary.LittleEndian.PutUint64(dst[at:], code)
		at += int(n >> 3)
		code >>= n & 56
		n &= 7
	}
	for i := len(in) - 1; i >= 0; i-- { // up to 7 + 33 bits
		c := uint64(h.codes[in[i]])
		code |= c >> 8 << (n & 63)
		n += c & 255
	}
	binary.LittleEndian.PutUint64(dst[at:], code|1<<(n&63))
	return dst[:at+int(n>>3)+1]
}
