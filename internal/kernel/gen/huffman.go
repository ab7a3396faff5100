package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// As in ../huffman.go, with the offsets of the fields of HuffmanStreams.
const (
	huffmanIn      = 0
	huffmanOut     = 96
	huffmanLeft    = 192
	huffmanDone    = 224
	huffmanStreams = 4
	huffmanLookups = 5
	huffmanBits    = 11
)

func huffmanFamily() {
	decodeHuffman()
}

// decodeHuffman decodes two streams at a time, in turns, as their instructions wait for the lookup before; and the two
// others.
func decodeHuffman() {
	function("decodeHuffmanBMI2", "func(in *[]byte, t *uint64, groups int)",
		"decodeHuffmanBMI2 decodes groups of lookups, at least one, in each stream of the HuffmanStreams that begin with in.")
	s, table, groups := pointer("in"), pointer("t"), pointer("groups")
	Label("group")
	for i := 0; i < huffmanStreams; i += 2 {
		pair := [2]huffmanStream{loadHuffman(s, i), loadHuffman(s, i+1)}
		for range huffmanLookups {
			for _, p := range pair {
				p.lookup(table)
			}
		}
		for _, p := range pair {
			p.store()
		}
	}
	DECQ(groups)
	JNZ(LabelRef("group"))
	RET()
}

// A huffmanStream is a stream in registers.
type huffmanStream struct {
	number         int
	s, v, to, sums Register // next bits, next symbol, and sums of bits and symbols
}

func (h huffmanStream) slice(offset int) Mem { return Mem{Base: h.s, Disp: offset + 24*h.number} }

func (h huffmanStream) count(offset int) Mem { return Mem{Base: h.s, Disp: offset + 8*h.number} }

// loadHuffman loads the bits of a stream before the last one that is left.
func loadHuffman(s Register, number int) huffmanStream {
	h := huffmanStream{number, s, GP64(), GP64(), GP32()}
	shift := GP64()
	// Streams are read from their end. Of the last byte up to seven bits are used, which are shifted out: at least 57
	// bits are left, enough for all lookups.
	MOVQ(h.count(huffmanLeft), h.to)
	MOVQ(h.to, shift)
	NEGQ(shift)
	ANDQ(U8(7), shift)
	ADDQ(U8(7), h.to)
	SHRQ(U8(3), h.to)
	MOVQ(h.slice(huffmanIn), h.v)
	MOVQ(Mem{Base: h.v, Index: h.to, Scale: 1, Disp: -8}, h.v)
	SHLXQ(shift, h.v, h.v)
	MOVQ(h.slice(huffmanOut), h.to)
	ADDQ(h.count(huffmanDone), h.to)
	XORL(h.sums, h.sums)
	return h
}

func (h huffmanStream) lookup(table Register) {
	next := GP64()
	MOVQ(h.v, next)
	SHRQ(U8(64-huffmanBits), next)
	// An entry has the number of bits, that of symbols, and from bit 32 on the symbols.
	MOVQ(Mem{Base: table, Index: next, Scale: 8}, RAX)
	SHLXQ(RAX, h.v, h.v)
	// Both sums at once: that of the bits does not exceed a byte.
	ADDL(EAX, h.sums)
	MOVBLZX(AH, ECX)
	SHRQ(U8(32), RAX)
	MOVL(EAX, Mem{Base: h.to})
	ADDQ(RCX, h.to)
}

// store stores the numbers of bits and symbols.
func (h huffmanStream) store() {
	sums := h.sums.(GPVirtual)
	MOVBLZX(sums.As8L(), ECX)
	SUBQ(RCX, h.count(huffmanLeft))
	SHRL(U8(8), sums)
	ADDQ(sums.As64(), h.count(huffmanDone))
}
