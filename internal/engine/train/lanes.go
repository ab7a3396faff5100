package train

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// lanes is a tensor as outer × n × inner: n elements with stride inner are one row of a loss, or the weights of one
// output.
type lanes struct{ outer, n, inner int }

// lanesOf returns the lanes of a shape along an axis.
func lanesOf(shape []int64, axis int) lanes {
	return lanes{int(op.Product(shape[:axis])), int(shape[axis]), int(op.Product(shape[axis+1:]))}
}

func (l lanes) rows() int { return l.outer * l.inner }

// offset returns the index of the first element of row i.
func (l lanes) offset(i int) int { return i/l.inner*l.n*l.inner + i%l.inner }

// part returns row i of a: a slice of a if its elements are contiguous, else a copy in buf.
func part[T ir.Element](l lanes, a, buf []T, i int) []T {
	at := l.offset(i)
	if l.inner == 1 {
		return a[at : at+l.n]
	}
	for k := range buf {
		buf[k] = a[at+k*l.inner]
	}
	return buf
}

// put stores row i of a, unless it is the slice of a that buffer returned.
func put[T ir.Element](l lanes, a, row []T, i int) {
	if l.inner == 1 {
		return
	}
	at := l.offset(i)
	for k, v := range row {
		a[at+k*l.inner] = v
	}
}

// buffer returns the slice to write row i of a to, before put.
func buffer[T ir.Element](l lanes, a, buf []T, i int) []T {
	if l.inner == 1 {
		return a[i*l.n : (i+1)*l.n]
	}
	return buf
}

// runs calls f for the contiguous parts of the indices from to to-1.
func (l lanes) runs(from, to int, f func(index, from, to int)) {
	for o := range l.outer {
		for k := from; k < to; k++ {
			at := (o*l.n + k) * l.inner
			f(k, at, at+l.inner)
		}
	}
}
