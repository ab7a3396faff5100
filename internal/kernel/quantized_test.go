package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A quantizedSample is a matrix of random values, packed and by element.
type quantizedSample struct {
	Quantized
	value func(n, k int) uint32
}

// newQuantized packs random values with zero points of a kind: all the same, bytes, floats, or a table instead.
func newQuantized(r *rand.Rand, k, n, bits, block, kind int) *quantizedSample {
	q := &quantizedSample{Quantized: Quantized{K: k, N: n, Bits: bits, Block: block, Zero: 3}}
	stride, flip := r.IntN(4), byte(r.IntN(2)<<(bits-1))
	byRows := r.IntN(2) == 0
	if stride += k; byRows {
		stride += n - k
	}
	src := make([]byte, (max(k, n)*stride*bits+7)/8)
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	q.value = func(n, k int) uint32 {
		at := n*stride + k
		if byRows {
			at = k*stride + n
		}
		return uint32(src[at*bits/8]>>(at*bits%8)&(1<<bits-1)) ^ uint32(flip)
	}
	q.Values = make([]byte, q.ValueBytes())
	for panel := range q.Panels() {
		if byRows {
			q.PackRows(panel, src, stride, flip)
		} else {
			q.PackColumns(panel, src, stride, flip)
		}
	}
	q.Scales = gaussian(r, q.BlockValues())
	switch kind % 4 {
	case 1:
		q.Zeros = make([]byte, q.BlockValues())
		for i := range q.Zeros {
			q.Zeros[i] = byte(r.Uint32() & (1<<bits - 1))
		}
	case 2:
		q.Floats = gaussian(r, q.BlockValues())
	case 3:
		if bits > 2 {
			q.Table = gaussian(r, 1<<bits)
		}
	}
	return q
}

// element is the definition.
func (q *quantizedSample) element(k, n int) float32 {
	at := q.blockAt(n, k/q.Block)
	value, scale := q.value(n, k), q.Scales[at]
	switch {
	case q.Table != nil:
		return q.Table[value] * scale
	case q.Zeros != nil:
		return (float32(value) - float32(q.Zeros[at])) * scale
	case q.Floats != nil:
		return (float32(value) - q.Floats[at]) * scale
	}
	return (float32(value) - q.Zero) * scale
}

// panel is rows of a panel, by definition.
func (q *quantizedSample) panel(panel, k0, k1 int) []float32 {
	var to []float32
	for k := k0; k < k1; k++ {
		for n := panel * GemmPanel; n < (panel+1)*GemmPanel; n++ {
			v := float32(0)
			if n < q.N {
				v = q.element(k, n)
			}
			to = append(to, v)
		}
	}
	return to
}

// Decoded panels equal the definition, and products of a row equal those with the decoded panels, bit by bit.
func FuzzQuantized(f *testing.F) {
	for i := range uint8(48) {
		f.Add(uint64(i), 17*i, i%5*11, i, i/3, i/2)
	}
	f.Fuzz(func(t *testing.T, seed uint64, k, n, kind, block, from uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		bits := 2 << (kind % 3)
		q := newQuantized(r, 1+int(k)*2, 1+int(n), bits, 1+int(k)*2+int(block), int(kind)/3)
		if block%4 > 0 {
			q = newQuantized(r, q.K, q.N, bits, 32/bits*(1+int(block)%20), int(kind)/3)
		}
		if !q.Fits() {
			t.Fatal("does not fit")
		}
		k0 := int(from) % q.words() * q.per()
		k1 := k0 + 1 + r.IntN(q.K-k0)
		last := r.IntN(q.Panels())
		panels := [][]float32{q.panel(last, k0, k1)}
		got, check := guarded[float32](len(panels[0]), 7)
		q.Decode(got, last, k0, k1)
		check(t)
		for col := range GemmPanel {
			for at := col; at < len(got) && last*GemmPanel+col < q.N; at += GemmPanel {
				wantBits(t, got[at:at+1], panels[0][at:at+1])
			}
		}
		a, count := gaussian(r, k1-k0), 1+r.IntN(q.Panels()-last)
		sums := gaussian(r, GemmPanel*count)
		want := slices.Clone(sums)
		for i := range count {
			GemmFloat(want[i*GemmPanel:], GemmPanel, GemmA{Data: a, Row: len(a), K: 1},
				GemmB{Data: q.panel(last+i, k0, k1), K: GemmPanel}, 1, GemmPanel, len(a), false)
		}
		clear(sums)
		q.Row(sums, a, last, k0, k1)
		cols := min(len(sums), q.N-last*GemmPanel)
		wantBits(t, sums[:cols], want[:cols])
	})
}

// BenchmarkQuantized measures weights per nanosecond of a row times a matrix, and of decoding.
func BenchmarkQuantized(b *testing.B) {
	for _, c := range []struct{ bits, kind int }{{4, 0}, {4, 1}, {4, 3}, {2, 0}, {8, 0}, {8, 3}} {
		q := newQuantized(rand.New(rand.NewPCG(1, 0)), 1024, 32, c.bits, 32, c.kind)
		a, sums, dst := make([]float32, q.K), make([]float32, q.N), make([]float32, q.K*GemmPanel)
		b.Run(fmt.Sprint("row/", c.bits, "/", c.kind), func(b *testing.B) {
			for b.Loop() {
				for k := 0; k < q.K; k += 256 {
					q.Row(sums, a[k:k+256], 0, k, k+256)
				}
			}
			b.ReportMetric(float64(q.K*q.N*b.N)/float64(b.Elapsed().Nanoseconds()), "weights/ns")
		})
		if q.Int8Block() > 0 {
			rows := newInt8Rows(rand.New(rand.NewPCG(2, 0)), &q.Quantized, 1)
			b.Run(fmt.Sprint("int8row/", c.bits, "/", c.kind), func(b *testing.B) {
				for b.Loop() {
					q.Int8Row(sums, rows, 0, 0)
				}
				b.ReportMetric(float64(q.K*q.N*b.N)/float64(b.Elapsed().Nanoseconds()), "weights/ns")
			})
		}
		b.Run(fmt.Sprint("decode/", c.bits, "/", c.kind), func(b *testing.B) {
			for b.Loop() {
				q.Decode(dst, 0, 0, q.K)
			}
			b.ReportMetric(float64(q.K*GemmPanel*b.N)/float64(b.Elapsed().Nanoseconds()), "weights/ns")
		})
	}
}
