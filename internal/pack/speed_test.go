package pack

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/ir"
)

// BenchmarkChunk encodes and decodes a chunk of normally distributed weights.
func BenchmarkChunk(b *testing.B) {
	for _, t := range []ir.DType{ir.Float, ir.Float16, ir.BFloat16} {
		raw := normal(t)
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

// normal is a chunk of normally distributed weights.
func normal(t ir.DType) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, 0, maxChunk)
	for len(raw) < maxChunk {
		x := float32(r.NormFloat64() * 0.02)
		switch t {
		case ir.Float:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		case ir.Float16:
			raw = binary.LittleEndian.AppendUint16(raw, float16.Fromfloat32(x).Bits())
		default:
			raw = binary.LittleEndian.AppendUint16(raw, uint16(math.Float32bits(x)>>16))
		}
	}
	return raw
}

// BenchmarkMix encodes and decodes the exponents of normally distributed weights by mixing.
func BenchmarkMix(b *testing.B) {
	raw := normal(ir.Float)
	in := newChunker(true).symbolsOf(form{0, 4, rotatedPlanes}, raw[:512<<10])[384<<10:]
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
}
