package rescale

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A view returns the same bytes for any offset and length: the elements times their channels'
// factors.
func TestViewsCanBeReadAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, a := range []axis{{n: 7, inner: 1}, {n: 5, inner: 3}, {n: 2, inner: 64},
		{n: 12, inner: 2, of: func(i int64) int64 {
			return i % 4
		}}} {
		for _, dt := range []ir.DType{ir.Float, ir.Float16, ir.BFloat16} {
			n := a.n * a.inner * 6
			x, f := make([]float32, n), make([]float64, a.n)
			for i := range x {
				x[i] = float32(int(r.Uint32()%64)) / 8 // exact in every type
			}
			for i := range f {
				f[i] = float64(int(1) << (r.Uint32() % 4))
			}
			payload := encoded(dt, x)
			v := &view{scale: scale{a, a.spread(f)}, in: bytes.NewReader(payload), dt: dt}
			for i := range x {
				x[i] *= float32(f[a.channel(int64(i))])
			}
			want := encoded(dt, x)
			for range 50 {
				from := r.IntN(len(want))
				got := make([]byte, r.IntN(len(want)-from)+1)
				if k, err := v.ReadAt(got, int64(from)); k != len(got) || err != nil && err != io.EOF {
					t.Fatal(k, err)
				}
				if !bytes.Equal(got, want[from:][:len(got)]) {
					t.Fatalf("%s, axis of %d: bytes %d to %d differ", dt, a.n, from, from+len(got))
				}
			}
		}
	}
}

func encoded(dt ir.DType, x []float32) []byte {
	half := make([]uint16, len(x))
	switch dt {
	case ir.Float16:
		kernel.F16FromF32(half, x)
	case ir.BFloat16:
		kernel.BF16FromF32(half, x)
	default:
		return bytes.Clone(kernel.Bytes(x))
	}
	return kernel.Bytes(half)
}
