package pack

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/fse"
	"github.com/klauspost/compress/huff0"
)

// distributed are n symbols whose logarithm is distributed geometrically, of up to 256 kinds.
func distributed(n int, p float64) []byte {
	r := rand.New(rand.NewPCG(21, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		for b[i] < 255 && r.Float64() > p {
			b[i]++
		}
	}
	return b
}

// Another decoder restores our codes, we restore those of another encoder, and ours are not longer.
func TestHuffmanAgreesWithZstandard(t *testing.T) {
	h := &huffmanCoder{}
	for _, n := range []int{16, 17, 99, 1000, blockSize - 1, blockSize} {
		for _, p := range []float64{0.9, 0.5, 0.2, 0.02} {
			in := distributed(n, p)
			if same(in) {
				continue
			}
			theirs, _, err := huff0.Compress4X(in, &huff0.Scratch{Reuse: huff0.ReusePolicyNone})
			ours, ok := h.encode(nil, in)
			if err != nil {
				continue // nothing is saved
			}
			if !ok || len(ours) > len(theirs)+8 {
				t.Fatalf("%d symbols, p = %g: %d bytes, another encoder %d", n, p, len(ours), len(theirs))
			}
			s, rest, err := huff0.ReadTable(ours, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Decoder().Decompress4X(make([]byte, 0, n), rest)
			if err != nil || !bytes.Equal(got, in) {
				t.Fatalf("%d symbols, p = %g: another decoder has other symbols: %v", n, p, err)
			}
			for _, code := range [][]byte{ours, theirs} {
				got := make([]byte, n)
				if err := h.decode(got, code); err != nil || !bytes.Equal(got, in) {
					t.Fatalf("%d symbols, p = %g: other symbols: %v", n, p, err)
				}
			}
		}
	}
}

// Each entry of the table has as many symbols as its bits are codes of, up to four: fewer are decoded slower, more are wrong.
func TestEntriesHaveAllSymbolsOfTheirBits(t *testing.T) {
	h := &huffmanCoder{}
	for _, p := range []float64{0.9, 0.5, 0.2, 0.02} {
		code, _ := h.encode(nil, distributed(5000, p))
		if _, err := h.readWeights(code); err != nil {
			t.Fatal(err)
		}
		for i, got := range h.table {
			bits, number, symbols := 0, 0, uint64(0)
			for number < 4 {
				next := h.single[i<<bits&(1<<maxBits-1)]
				if bits+int(next>>8) > maxBits {
					break
				}
				symbols |= uint64(next&255) << (8 * number)
				bits, number = bits+int(next>>8), number+1
			}
			if want := symbols<<32 | uint64(number)<<8 | uint64(bits); got != want {
				t.Fatalf("p = %g: bits %011b have the entry %#x, want %#x", p, i, got, want)
			}
		}
	}
}

// A code has at most 256 symbols, the last of them without a weight.
func TestWeightsOfTooManySymbols(t *testing.T) {
	weights := append(append(make([]byte, 102), bytes.Repeat([]byte{1}, 55)...), bytes.Repeat([]byte{2}, 100)...) // for a code of 8 bits
	for n, want := range map[int]bool{254: true, 255: true, 256: false, 257: false} {
		code, err := fse.Compress(weights[len(weights)-n:], &fse.Scratch{})
		if err != nil || len(code) > 127 {
			t.Fatal(len(code), err)
		}
		if _, err := (&huffmanCoder{}).readWeights(append([]byte{byte(len(code))}, code...)); (err == nil) != want {
			t.Errorf("weights of %d symbols: %v", n, err)
		}
	}
}

// Any bytes are rejected or decoded, as by another decoder.
func FuzzHuffman(f *testing.F) {
	h := &huffmanCoder{}
	for _, n := range []int{16, 1000} {
		code, _ := h.encode(nil, distributed(n, 0.5))
		f.Add(code, uint16(n))
	}
	f.Fuzz(func(t *testing.T, in []byte, n uint16) {
		got := make([]byte, n)
		err := h.decode(got, in)
		s, rest, theirs := huff0.ReadTable(in, nil)
		var want []byte
		if theirs == nil {
			want, theirs = s.Decoder().Decompress4X(make([]byte, 0, n), rest)
		}
		if err == nil && theirs == nil && !bytes.Equal(got, want) {
			t.Error("other symbols than another decoder")
		}
	})
}
