package pack

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
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
			if allEqual(in) {
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

// Each entry of the table has as many symbols as its bits are codes of, up to four: fewer are decoded slower, more are
// wrong.
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

// Weights have the shorter one of their two forms: four bits each, for up to 128, or FSE, of less than 128 bytes.
func TestFormsOfWeights(t *testing.T) {
	forms := map[bool]int{}
	for _, n := range []int{16, 99, 1000, 20_000} {
		for _, p := range []float64{0.9, 0.7, 0.5, 0.2, 0.1, 0.05, 0.02} {
			h, in := &huffmanCoder{}, distributed(n, p)
			if allEqual(in) {
				continue
			}
			last := int(slices.Max(h.assign(in)))
			best := 129
			if last <= 128 {
				best = (last + 1) / 2
			}
			coded, err := fse.Compress(h.weights[:last], &fse.Scratch{TableLog: 6})
			asFSE := err == nil && len(coded) < min(best, 128)
			if asFSE {
				best = len(coded)
			}
			forms[asFSE]++
			got, ok := h.appendWeights(nil, last)
			if ok != (best <= 128) || ok && (len(got) != 1+best || (got[0] < 128) != asFSE) {
				t.Errorf("%d symbols, p = %g: weights of %d symbols have %d bytes, want %d", n, p, last, len(got), 1+best)
			}
		}
	}
	if forms[true] == 0 || forms[false] == 0 {
		t.Errorf("one form is not tested: %v", forms)
	}
}

// Codes that no encoder makes are errors, not other symbols.
func TestMalformedHuffmanCodes(t *testing.T) {
	h, in := &huffmanCoder{}, distributed(1000, 0.5)
	code, _ := h.encode(nil, in)
	size := 1 + int(code[0]) // of the weights
	if code[0] > 127 {
		size = 1 + (int(code[0])-126)/2
	}
	changed := func(at int, b byte) []byte {
		c := bytes.Clone(code)
		c[at] = b
		return c
	}
	zero := changed(len(code)-1, 0)
	for name, c := range map[string][]byte{
		"empty": nil, "no weights": code[:1], "part of the weights": code[:size-1], "no sizes": code[:size],
		"part of the sizes": code[:size+sizes-1], "no streams": code[:size+sizes],
		"no last stream": code[:size+sizes+int(code[size])+256*int(code[size+1])], "no end of a stream": zero,
		"weights of zero":    append([]byte{128, 0}, code[size:]...),
		"too large a weight": append([]byte{128, 0xc0}, code[size:]...),
		"an unused code":     append([]byte{129, 0x31}, code[size:]...), "an empty stream": changed(size, 0)[:size+sizes+1],
		"a byte more": append(bytes.Clone(code), 1),
	} {
		if err := h.decode(make([]byte, len(in)), c); !errors.Is(err, errHuffman) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n, want := range map[int]bool{len(in): true, len(in) - 4: false, len(in) + 4: false} {
		if err := h.decode(make([]byte, n), code); (err == nil) != want {
			t.Errorf("%d symbols of %d: %v", n, len(in), err)
		}
	}
}

// A code has at most 256 symbols, the last of them without a weight.
func TestWeightsOfTooManySymbols(t *testing.T) {
	// for a code of 8 bits
	weights := append(append(make([]byte, 102), bytes.Repeat([]byte{1}, 55)...), bytes.Repeat([]byte{2}, 100)...)
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
