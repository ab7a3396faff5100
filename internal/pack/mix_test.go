package pack

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
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
	return [][]byte{{0}, {255}, noise[:2], noise, make([]byte, 70_000), bytes.Repeat([]byte{255}, 5000),
		bytes.Repeat([]byte("node input output"), 300)}
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

// repetitive are bytes with matches of all lengths, after which other bytes follow.
func repetitive() (b []byte) {
	r := rand.New(rand.NewPCG(17, 18))
	for i := range 120 {
		from := 0
		if i > 0 {
			from = r.IntN(len(b))
		}
		b = append(b, b[from:min(len(b), from+4*i)]...)
		for range r.IntN(9) + 1 {
			b = append(b, byte(r.IntN(40)))
		}
	}
	return b
}

// The code of bytes is a part of the format: readers predict what writers of all versions have predicted.
func TestMixedBytesAreStable(t *testing.T) {
	for i, in := range [][]byte{repetitive(), distributed(3000, 0.3), bytes.Repeat([]byte("node input output"), 300)} {
		code := mixed(nil, in)
		if got, want := fmt.Sprintf("%d %08x", len(code), checksum(code)),
			[]string{"1158 3d4097d7", "1150 8be3caa1", "18 f54756bf"}[i]; got != want {
			t.Errorf("%d bytes: another code %s, before %s", len(in), got, want)
		}
	}
}

// The match model follows an earlier place after the same bytes, at least four, and knows how many they are, up to 400.
func TestMatches(t *testing.T) {
	for _, in := range append(inputs(), distributed(3000, 0.3), bytes.Repeat(distributed(500, 0.1), 20), repetitive()) {
		m := newMixer(len(in))
		followed := 0
		for i, b := range in {
			m.data = append(m.data, b)
			m.match(m.byteBefore(1) | m.byteBefore(2)<<8 | m.byteBefore(3)<<16 | m.byteBefore(4)<<24)
			common := 0
			for common < min(m.followed, 400) && in[m.followed-1-common] == in[i-common] {
				common++
			}
			if m.followed > i || common != m.length || m.followed > 0 && common < 4 {
				t.Fatalf("%d bytes of %x…: place %d is said to follow %d bytes that are before place %d, %d are", len(in), in[:1],
					m.followed, m.length, i+1, common)
			}
			if m.followed > 0 {
				followed++
			}
		}
		if len(in) > 3000 && followed < len(in)*8/10 {
			t.Errorf("%d bytes of %x…: %d are followed", len(in), in[:1], followed)
		}
	}
}

// Each number of known contexts has weights of its own without a match, with a short and with a long one.
func TestSetsOfWeights(t *testing.T) {
	m, seen := newMixer(100), map[int]bool{}
	m.data = make([]byte, 100)
	for length, followed := range map[int]int{0: 0, 15: 50, 16: 50} {
		m.length, m.followed = length, followed
		for m.knownLines = 0; m.knownLines <= contexts; m.knownLines++ {
			if m.predict(); seen[m.set] {
				t.Errorf("%d known contexts and a match of %d bytes have the weights of others", m.knownLines, length)
			}
			seen[m.set] = true
		}
	}
	if len(seen) != len(m.weights) {
		t.Errorf("%d of %d sets are used", len(seen), len(m.weights))
	}
}

// Contexts of little effect are dropped, at the end of 1024 bytes: those of less than 1/16 of all effects if the bytes
// are noisy, else of less than 1/64. Writers and readers of all versions have to drop the same ones, or other bytes are
// restored.
func TestContextsOfLittleEffectAreDropped(t *testing.T) {
	const noisy = checkEvery * 8 << 16 / 16
	for name, c := range map[string]struct {
		bytes       int
		errors      int64
		first, last int32 // weights of two contexts: their effects times 256
		want        bool  // that the last one is kept
	}{
		"1/64":                  {checkEvery, noisy, 256*630 + 255, 256 * 10, true},
		"1/71 of little":        {checkEvery, noisy, 256 * 630, 256 * 9, true}, // 1/64 of 639 is rounded to 9
		"less":                  {checkEvery, noisy, 256 * 631, 256*10 - 1, false},
		"negative":              {2 * checkEvery, 0, 256 * 630, -256 * 10, true},
		"noisy, 1/16":           {checkEvery, noisy + 1, 256 * 600, 256 * 40, true},
		"noisy, less":           {checkEvery, noisy + 1, 256 * 601, 256*40 - 1, false},
		"before the next check": {checkEvery + 1, noisy + 1, 256 * 600, 0, true},
	} {
		m := newMixer(checkEvery)
		m.data, m.errors, m.active = make([]byte, c.bytes), c.errors, []uint{0, contexts - 1}
		m.inputs[0], m.inputs[contexts-1] = 1, 1
		m.weights[m.set][0], m.weights[m.set][contexts-1] = c.first, c.last
		m.drop()
		if got := slices.Equal(m.active, []uint{0, contexts - 1}); got != c.want || m.active[0] != 0 {
			t.Errorf("%s: %v are kept", name, m.active)
		}
		if anew := c.bytes%checkEvery == 0; anew != (m.errors == 0) || anew != (m.effect[0] == 0) ||
			anew != (m.inputs[0] == 0) {
			t.Errorf("%s: effect %d, errors %d", name, m.effect[0], m.errors)
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
