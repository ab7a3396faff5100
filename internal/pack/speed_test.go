package pack

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// BenchmarkChunk encodes and decodes a chunk of normally distributed weights.
func BenchmarkChunk(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, 0, maxChunk)
	for len(raw) < maxChunk {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(r.NormFloat64()*0.02)))
	}
	halves := make([]byte, 0, maxChunk)
	for range 2 {
		for i := 0; i < maxChunk; i += 4 {
			halves = append(halves, raw[i+2], raw[i+3])
		}
	}
	for t, raw := range map[ir.DType][]byte{ir.Float: raw, ir.BFloat16: halves} {
		c := newChunker(false)
		k := c.choose(t, raw[:maxSample], nil)
		var payload []byte
		b.Run(fmt.Sprintf("%s/encode", t), func(b *testing.B) {
			b.SetBytes(maxChunk)
			for b.Loop() {
				payload = c.encode(payload[:0], k, raw)
			}
		})
		b.Run(fmt.Sprintf("%s/decode", t), func(b *testing.B) {
			b.SetBytes(maxChunk)
			payload = c.encode(payload[:0], k, raw)
			for b.Loop() {
				if err := c.decode(k.form, raw, payload); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%s/choose", t), func(b *testing.B) {
			for b.Loop() {
				c.choose(t, raw[:maxSample], nil)
			}
		})
		b.Log(k, len(payload))
	}
}

// BenchmarkMix encodes and decodes the exponents of normally distributed weights by mixing.
func BenchmarkMix(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	in := make([]byte, 128<<10)
	for i := range in {
		in[i] = byte(math.Float32bits(float32(r.NormFloat64()*0.02)) >> 23)
	}
	code := mixed(nil, in)
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		for b.Loop() {
			code = mixed(code[:0], in)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		out := make([]byte, len(in))
		for b.Loop() {
			unmixed(out, code)
		}
	})
	b.Log(len(code))
}
