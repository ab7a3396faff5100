package kernel

import (
	"encoding/binary"
	"math"
)

// HuffmanBits is the maximum number of bits of a Huffman code.
const HuffmanBits = 11

// HuffmanStreams are four streams of Huffman codes, which are read from the last bit to the first one, as in RFC 8878.
// Assembly depends on the order of the fields.
type HuffmanStreams struct {
	In, Out [4][]byte
	Left    [4]int // bits of In that are not decoded
	Done    [4]int // symbols in Out
}

// A HuffmanTable has for the next bits the symbols that begin with them, up to four: the bits of their codes in the
// lowest byte, their number in the second one, and the symbols in the upper four.
type HuffmanTable [1 << HuffmanBits]uint64

const (
	huffmanLookups = 5                  // in the bits that are loaded at once
	huffmanSymbols = 4 * huffmanLookups // that they have, or less
	huffmanUsed    = HuffmanBits * huffmanLookups
)

// DecodeHuffman decodes the streams, by turns so that they do not wait for each other, until one has less than 64 bits
// or place for 20 symbols.
func DecodeHuffman(s *HuffmanStreams, t *HuffmanTable) {
	for {
		groups := s.groups()
		if groups < 1 {
			return
		}
		if !decodeHuffmanBulk(s, t, groups) {
			decodeHuffmanGo(s, t, groups)
		}
	}
}

// groups is the number of groups of lookups that all streams have bits and place for, whatever the symbols.
func (s *HuffmanStreams) groups() int {
	n := math.MaxInt
	for i := range s.Left {
		// Of the last group 64 bits are loaded, of which it uses up to 55; each lookup writes four bytes, whatever the
		// number of symbols.
		n = min(n, (s.Left[i]-64+huffmanUsed)/huffmanUsed, (len(s.Out[i])-s.Done[i])/huffmanSymbols)
	}
	return n
}

func decodeHuffmanGo(s *HuffmanStreams, t *HuffmanTable, groups int) {
	for range groups {
		for i, in := range &s.In {
			// The eight bytes whose last one has the next bit, which the shift makes the highest one.
			v := binary.LittleEndian.Uint64(in[(s.Left[i]+7)/8-8:]) << (uint(-s.Left[i]) & 7)
			for range huffmanLookups {
				e := t[v>>(64-HuffmanBits)]
				// Bytes beyond the symbols are overwritten by the next lookup.
				binary.LittleEndian.PutUint32(s.Out[i][s.Done[i]:], uint32(e>>32))
				v <<= e & 63
				s.Left[i] -= int(e & 255)
				s.Done[i] += int(e >> 8 & 255)
			}
		}
	}
}
