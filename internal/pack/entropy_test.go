package pack

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Quantized values of a normal distribution take hardly more than the entropy of their distribution (order 0).
func TestIntegersAreCodedByTheirEntropy(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	int8s, int4s := make([]byte, maxChunk), make([]byte, maxChunk)
	for i := range int8s {
		int8s[i] = byte(int8(min(max(r.NormFloat64()*32, -128), 127)))
		int4s[i] = byte(int8(r.NormFloat64()*2))&15 | byte(int8(r.NormFloat64()*2))<<4
	}
	c := newChunker(false)
	for _, tensor := range []struct {
		name    string
		t       ir.DType
		raw     []byte
		symbols []byte
	}{{"int8", ir.Int8, int8s, int8s}, {"int4", ir.Int4, int4s, newChunker(false).symbolsOf(form{0, 1, nibbles}, int4s)}} {
		want := orderZero(tensor.symbols)
		got := float64(len(c.encode(nil, c.choose(tensor.t, tensor.raw[:maxSample], nil), tensor.raw)))
		if t.Logf("%s: %.3f %% above the entropy", tensor.name, 100*(got/want-1)); got > 1.002*want {
			t.Errorf("%s: %.0f bytes, entropy %.0f", tensor.name, got, want)
		}
	}
}

// orderZero is the entropy of symbols, in bytes.
func orderZero(symbols []byte) float64 {
	var count [256]float64
	for _, s := range symbols {
		count[s]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			bits -= n * math.Log2(n/float64(len(symbols)))
		}
	}
	return bits / 8
}
