package pack

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// inputs are bytes of several kinds: none, few, random, equal, text.
func inputs() [][]byte {
	r := rand.New(rand.NewPCG(15, 16))
	noise := make([]byte, 3000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	return [][]byte{{0}, {255}, noise[:2], noise, make([]byte, 70_000), bytes.Repeat([]byte{255}, 5000), bytes.Repeat([]byte("node input output"), 300)}
}

// Mixed bytes are restored, structure takes hardly any bytes, and noise hardly more than it has.
func TestMixedBytesAreRestored(t *testing.T) {
	for _, in := range inputs() {
		code, got := mixed(nil, in), make([]byte, len(in))
		if unmixed(got, code); !bytes.Equal(got, in) {
			t.Errorf("%d bytes of %x…: restored other bytes", len(in), in[:1])
		}
		if len(code) > len(in)*51/50+4 || len(in) > 3000 && len(code) > 150 {
			t.Errorf("%d bytes of %x…: %d", len(in), in[:1], len(code))
		}
	}
}

// Any bytes are decoded to the given number of bytes.
func FuzzUnmixed(f *testing.F) {
	for _, in := range inputs() {
		f.Add(mixed(nil, in), uint16(len(in)))
	}
	f.Fuzz(func(t *testing.T, in []byte, n uint16) {
		out := make([]byte, n)
		unmixed(out, in)
		again := make([]byte, n)
		if unmixed(again, mixed(nil, out)); !bytes.Equal(again, out) {
			t.Error("restored other bytes")
		}
	})
}

// A tensor whose codec is chosen on all of it is not mixed again when it is encoded.
func TestTensorIsMixedOnce(t *testing.T) {
	c := newChunker(true)
	raw := bytes.Repeat([]byte("scale zero point "), 100)
	k := c.choose(ir.Uint8, raw, nil)
	tried := len(c.mixed)
	payload := c.encode(nil, k, raw)
	if k.coders[0] != mix || tried == 0 || len(c.mixed) != tried {
		t.Errorf("%v: %d planes mixed before encoding, %d after", k, tried, len(c.mixed))
	}
	again := newChunker(true).encode(nil, k, raw)
	if !bytes.Equal(payload, again) {
		t.Error("another chunker has other bytes")
	}
}
