package prune

import (
	"io"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// keys are the magnitudes of one block of a tensor as integers in the same order: the bits
// of float32, or of float64 where float64 tensors are ranked.
type keys interface {
	// load reads n elements of t from first on.
	load(r io.ReaderAt, t *ir.Tensor, first, n int64) error
	// finite reports whether the block holds neither NaN nor infinities.
	finite() bool
	// filter counts the keys below lo, keeps those from lo to hi, and counts these too.
	filter(lo, hi uint64) (below, within int)
	// tally counts the keys kept by (key-lo)>>shift.
	tally(counts []uint32, lo uint64, shift uint)
	// nth is the index of the n-th element, counted from 1, of the given key.
	nth(key uint64, n int64) int64
}

// keyBits is the width of keys.
func keyBits(wide bool) int {
	if wide {
		return 63
	}
	return 31
}

type narrowKeys struct {
	t    *ir.Tensor
	f    *pass.Floats // of t
	x    []float32
	keys []uint32
}

func (k *narrowKeys) load(r io.ReaderAt, t *ir.Tensor, first, n int64) error {
	if k.t != t {
		k.t, k.f = t, pass.NewFloats(r, t.DType)
	}
	k.x = resize(k.x, n)
	return k.f.Read(k.x, first)
}

func (k *narrowKeys) finite() bool {
	return uint64(kernel.AbsMaxBits(k.x)) < infinity(ir.Float)
}

func (k *narrowKeys) filter(lo, hi uint64) (below, within int) {
	below, k.keys = kernel.FilterRange(slices.Grow(k.keys[:0], len(k.x)), k.x, uint32(lo), uint32(hi))
	return below, len(k.keys)
}

func (k *narrowKeys) tally(counts []uint32, lo uint64, shift uint) {
	low := uint32(lo)
	for _, b := range k.keys {
		counts[(b-low)>>shift]++
	}
}

func (k *narrowKeys) nth(key uint64, n int64) int64 {
	return nth(k.x, n, func(v float32) bool { return uint64(math.Float32bits(v)&^(1<<31)) == key })
}

type wideKeys struct {
	x    []float64
	half []float32
	keys []uint64
}

func (k *wideKeys) load(r io.ReaderAt, t *ir.Tensor, first, n int64) error {
	k.x = resize(k.x, n)
	if t.DType == ir.Double {
		return ir.ReadFull(r, kernel.Bytes(k.x), first*8)
	}
	k.half = resize(k.half, n)
	if err := pass.NewFloats(r, t.DType).Read(k.half, first); err != nil {
		return err
	}
	for i, v := range k.half {
		k.x[i] = float64(v)
	}
	return nil
}

func (k *wideKeys) finite() bool {
	return largest(kernel.Bytes(k.x), ir.Double) < infinity(ir.Double)
}

func (k *wideKeys) filter(lo, hi uint64) (below, within int) {
	k.keys = k.keys[:0]
	for _, v := range k.x {
		b := wideKey(v)
		if b < lo {
			below++
		} else if b <= hi {
			k.keys = append(k.keys, b)
		}
	}
	return below, len(k.keys)
}

func (k *wideKeys) tally(counts []uint32, lo uint64, shift uint) {
	for _, b := range k.keys {
		counts[(b-lo)>>shift]++
	}
}

func (k *wideKeys) nth(key uint64, n int64) int64 {
	return nth(k.x, n, func(v float64) bool { return wideKey(v) == key })
}

func wideKey(v float64) uint64 { return math.Float64bits(v) &^ (1 << 63) }

// nth is the index of the n-th element that is.
func nth[T any](x []T, n int64, is func(T) bool) int64 {
	for i, v := range x {
		if is(v) {
			if n--; n == 0 {
				return int64(i)
			}
		}
	}
	panic("prune: a tie that was counted is not there")
}

// resize returns a slice of n elements, x itself if it is large enough.
func resize[T any](x []T, n int64) []T {
	if int64(cap(x)) < n {
		return make([]T, n)
	}
	return x[:n]
}
