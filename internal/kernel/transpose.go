package kernel

import "fmt"

// transposeTile is the side of the square tiles of a transposition, so that the cache lines of both sides are fully
// used while cached.
const transposeTile = 32

// TransposeBytes writes the rows×cols matrix src as the cols×rows matrix dst. They must not
// overlap.
func TransposeBytes(dst, src []byte, rows, cols int) {
	checkLen("src", len(src), rows*cols)
	checkLen("dst", len(dst), rows*cols)
	transposeBytesInto(dst, rows, src, cols, rows, cols)
}

// transposeBytesInto transposes a rows×cols window: src[r*srcStride+c] is copied to dst[c*dstStride+r]. Bytes of dst
// outside the window are unchanged.
func transposeBytesInto(dst []byte, dstStride int, src []byte, srcStride, rows, cols int) {
	checkWindow("src", len(src), srcStride, rows, cols)
	checkWindow("dst", len(dst), dstStride, cols, rows)
	doneRows, doneCols := transposeBytesBulk(dst, dstStride, src, srcStride, rows, cols)
	transposeRest(dst, dstStride, src, srcStride, rows, cols, doneRows, doneCols)
}

// Transpose is TransposeBytes for elements of any type.
func Transpose[T any](dst, src []T, rows, cols int) {
	checkLen("src", len(src), rows*cols)
	checkLen("dst", len(dst), rows*cols)
	TransposeInto(dst, rows, src, cols, rows, cols)
}

// TransposeInto transposes a window, as transposeBytesInto does, of elements of any type; strides count elements.
func TransposeInto[T any](dst []T, dstStride int, src []T, srcStride, rows, cols int) {
	checkWindow("src", len(src), srcStride, rows, cols)
	checkWindow("dst", len(dst), dstStride, cols, rows)
	doneRows, doneCols := transposeWordsBulk(dst, dstStride, src, srcStride, rows, cols)
	transposeRest(dst, dstStride, src, srcStride, rows, cols, doneRows, doneCols)
}

// checkWindow panics unless n elements contain rows of cols elements that start stride apart.
func checkWindow(name string, n, stride, rows, cols int) {
	if rows < 0 || cols < 0 || stride < cols {
		panic(fmt.Sprintf("kernel: %s: no %d×%d window of stride %d", name, rows, cols, stride))
	}
	if rows > 0 && cols > 0 && n < (rows-1)*stride+cols {
		panic(fmt.Sprintf("kernel: %s: %d elements, too few for a %d×%d window of stride %d", name, n, rows, cols,
			stride))
	}
}

// transposeRest transposes the part to the right of doneCols, then the part below doneRows and left of it.
func transposeRest[T any](dst []T, dstStride int, src []T, srcStride, rows, cols, doneRows, doneCols int) {
	if doneCols < cols {
		transposeGo(dst[doneCols*dstStride:], dstStride, src[doneCols:], srcStride, rows, cols-doneCols)
	}
	if doneRows < rows {
		transposeGo(dst[doneRows:], dstStride, src[doneRows*srcStride:], srcStride, rows-doneRows, doneCols)
	}
}

func transposeGo[T any](dst []T, dstStride int, src []T, srcStride, rows, cols int) {
	// In tiles, so that the lines of the other side are still in the cache when their next element is written.
	for r := 0; r < rows; r += transposeTile {
		for c := 0; c < cols; c += transposeTile {
			h, w := min(transposeTile, rows-r), min(transposeTile, cols-c)
			transposeTileGo(dst[c*dstStride+r:], dstStride, src[r*srcStride+c:], srcStride, h, w)
		}
	}
}

// transposeTileGo reads four rows at once, so that a column of theirs is one contiguous write: several times as fast as
// column by column.
func transposeTileGo[T any](dst []T, dstStride int, src []T, srcStride, rows, cols int) {
	r := 0
	for ; r+4 <= rows; r += 4 {
		s := src[r*srcStride:]
		s0, s1, s2, s3 := s[:cols], s[srcStride:][:cols], s[2*srcStride:][:cols], s[3*srcStride:][:cols]
		for c, v := range s0 {
			at := c*dstStride + r
			out := dst[at : at+4 : at+4]
			out[0], out[1], out[2], out[3] = v, s1[c], s2[c], s3[c]
		}
	}
	if r+3 == rows { // the channels of a color image
		s := src[r*srcStride:]
		s0, s1, s2 := s[:cols], s[srcStride:][:cols], s[2*srcStride:][:cols]
		for c, v := range s0 {
			at := c*dstStride + r
			out := dst[at : at+3 : at+3]
			out[0], out[1], out[2] = v, s1[c], s2[c]
		}
		return
	}
	for ; r < rows; r++ {
		for c, v := range src[r*srcStride:][:cols] {
			dst[c*dstStride+r] = v
		}
	}
}
