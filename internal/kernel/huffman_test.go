package kernel

import (
	"reflect"
	"testing"
)

// FuzzDecodeHuffman compares the symbols, and the bits that are left, with those of the twin for any table and codes.
func FuzzDecodeHuffman(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint64(1), uint16(300))
	f.Add([]byte{0xff, 1}, uint64(9), uint16(70))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64, n uint16) {
		var table HuffmanTable
		for i := range table {
			seed = seed*6364136223846793005 + 1442695040888963407
			table[i] = seed>>32<<32 | (1+seed>>8%4)<<8 | (1 + seed%HuffmanBits)
		}
		decode := func(decode func(*HuffmanStreams)) HuffmanStreams {
			var s HuffmanStreams
			for i := range s.In {
				s.In[i], s.Out[i] = in, make([]byte, int(n)+i)
				s.Left[i] = max(0, 8*len(in)-3*i)
			}
			decode(&s)
			for i := range s.Out { // the rest is unspecified
				s.Out[i] = s.Out[i][:s.Done[i]]
			}
			return s
		}
		got := decode(func(s *HuffmanStreams) { DecodeHuffman(s, &table) })
		want := decode(func(s *HuffmanStreams) {
			for s.groups() > 0 {
				decodeHuffmanGo(s, &table, s.groups())
			}
		})
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, twin %v", got, want)
		}
		for i := range got.Done {
			if got.Left[i] >= 64 && len(in) >= 8 && got.groups() > 0 {
				t.Fatalf("stream %d: %d bits left", i, got.Left[i])
			}
		}
	})
}
