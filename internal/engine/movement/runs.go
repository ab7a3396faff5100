package movement

import "github.com/mcompress/mcompress/internal/engine/op"

// A runs transfer copies n runs of size neighbours between listed places. It does so outer times,
// each time the steps further on.
type runs struct {
	n, size int
	dst     []int64 // where each run goes; nil for one behind the other
	src     []int64 // where each comes from; nil likewise

	outer, dstStep, srcStep int
}

func (*runs) isTransfer() {}

// moveRuns shares the runs among workers, but where dst is listed they may fall on one another: those of one
// round then go in order, so that the last one wins however many workers there are.
func moveRuns[T any](p *op.Pool, r *runs, dst, src []T) {
	if r.dst != nil {
		p.Rows(r.outer, max(1, grain/max(1, r.n*r.size)), func(from, to int) { someRuns(r, dst, src, from*r.n, to*r.n) })
		return
	}
	p.Rows(r.outer*r.n, max(1, grain/max(1, r.size)), func(from, to int) { someRuns(r, dst, src, from, to) })
}

// someRuns does those from from to to, counted over all rounds.
func someRuns[T any](r *runs, dst, src []T, from, to int) {
	for from < to {
		round, first := from/r.n, from%r.n
		last := min(r.n, first+to-from)
		d, s := dst[round*r.dstStep:], src[round*r.srcStep:]
		if r.size == 1 && r.dst == nil && r.src != nil {
			for i, at := range r.src[first:last] {
				d[first+i] = s[at]
			}
		} else {
			for i := first; i < last; i++ {
				to, from := place(r.dst, i, r.size), place(r.src, i, r.size)
				copy(d[to:to+r.size], s[from:from+r.size])
			}
		}
		from += last - first
	}
}

// place is where run i of that size starts.
func place(listed []int64, i, size int) int {
	if listed != nil {
		return int(listed[i])
	}
	return i * size
}
