package pack

import (
	"bytes"
	"math/rand/v2"
	"testing"
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
