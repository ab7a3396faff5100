package kernel

import (
	"fmt"
	"slices"
	"testing"
)

func checkTransposeBytes(t *testing.T, rows, cols, srcPad, dstPad int, seed byte) {
	t.Helper()
	srcStride, dstStride := cols+srcPad, rows+dstPad
	src := make([]byte, max(0, rows-1)*srcStride+cols)
	for i := range src {
		src[i] = byte(i)*31 ^ byte(i>>8) ^ seed
	}
	size := 0
	if rows > 0 && cols > 0 {
		size = (cols-1)*dstStride + rows
	}
	got, intact := guarded[byte](size, 0xa5)
	want := make([]byte, size)
	for i := range want {
		want[i] = 0xa5
	}
	for r := range rows {
		for c := range cols {
			want[c*dstStride+r] = src[r*srcStride+c]
		}
	}
	transposeBytesInto(got, dstStride, src, srcStride, rows, cols)
	wantSame(t, got, want)
	intact(t)
}

func TestTransposeBytesOfAWindow(t *testing.T) {
	for _, rows := range []int{0, 1, 2, 15, 16, 17, 31, 33, 48, 530} {
		for _, cols := range []int{0, 1, 3, 15, 16, 17, 32, 47, 65} {
			checkTransposeBytes(t, rows, cols, 0, 0, 1)
			checkTransposeBytes(t, rows, cols, 5, 3, 2)
		}
	}
}

func TestTransposeTwiceIsNothing(t *testing.T) {
	const rows, cols = 37, 70
	src := everyCode(rows * cols)
	turned, back := make([]byte, len(src)), make([]byte, len(src))
	TransposeBytes(turned, src, rows, cols)
	TransposeBytes(back, turned, cols, rows)
	wantSame(t, back, src)
}

func TestTransposeOfOtherElements(t *testing.T) {
	for _, rows := range []int{0, 1, 7, 8, 9, 31, 530} {
		for _, cols := range []int{0, 1, 7, 8, 9, 33, 70} {
			for _, padding := range []int{0, 3} {
				checkTranspose[uint16](t, rows, cols, padding)
				checkTranspose[uint32](t, rows, cols, padding)
				checkTranspose[uint64](t, rows, cols, padding)
			}
		}
	}
}

func checkTranspose[T uint16 | uint32 | uint64](t *testing.T, rows, cols, padding int) {
	t.Helper()
	srcStride, dstStride := cols+padding, rows+padding
	src := make([]T, rows*srcStride)
	for i := range src {
		src[i] = T(i)
	}
	got, intact := guarded[T](cols*dstStride, 9)
	want := slices.Clone(got)
	for r := range rows {
		for c := range cols {
			want[c*dstStride+r] = src[r*srcStride+c]
		}
	}
	if padding == 0 {
		Transpose(got, src, rows, cols)
	} else {
		TransposeInto(got, dstStride, src, srcStride, rows, cols)
	}
	wantSame(t, got, want)
	intact(t)
}

func BenchmarkTranspose(b *testing.B) {
	for _, size := range [][2]int{{64, 3136}, {512, 49}, {768, 768}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			n := size[0] * size[1]
			dst, src := make([]float32, n), make([]float32, n)
			b.SetBytes(int64(4 * n))
			for b.Loop() {
				Transpose(dst, src, size[0], size[1])
			}
		})
	}
}

func TestTransposeRefusesWrongLengths(t *testing.T) {
	b := make([]byte, 12)
	wantPanic(t, "short dst", func() { TransposeBytes(b[:11], b, 3, 4) })
	wantPanic(t, "short src", func() { transposeBytesInto(b, 3, b[:11], 4, 3, 4) })
	wantPanic(t, "stride below width", func() { transposeBytesInto(b, 3, b, 3, 3, 4) })
	wantPanic(t, "negative", func() { TransposeInto(b, 3, b, 4, -3, -4) })
}

func FuzzTransposeBytes(f *testing.F) {
	f.Add(uint16(33), uint16(18), byte(1), byte(2), byte(3))
	f.Fuzz(func(t *testing.T, rows, cols uint16, srcPad, dstPad, seed byte) {
		checkTransposeBytes(t, int(rows%600), int(cols%200), int(srcPad), int(dstPad), seed)
	})
}
