package kernel

import "testing"

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
	const rows, cols = 37, 70
	src, want := make([]uint16, rows*cols), make([]uint16, rows*cols)
	for i := range src {
		src[i] = uint16(i)
		want[i%cols*rows+i/cols] = uint16(i)
	}
	got := make([]uint16, len(src))
	Transpose(got, src, rows, cols)
	wantSame(t, got, want)
	clear(got)
	TransposeInto(got[10:], rows, src[20:], cols, rows-10, cols-20)
	for i := range want {
		if r, c := i%rows, i/rows; r < 10 || c >= cols-20 {
			want[i] = 0
		} else {
			want[i] = src[(r-10)*cols+c+20]
		}
	}
	wantSame(t, got, want)
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
