package movement

import "github.com/mcompress/mcompress/internal/engine/op"

// A runs transfer copies n contiguous runs of size elements between listed positions. It repeats this outer times, with
// positions advanced by the steps.
type runs struct {
	n, size int
	dst     []int64 // destination of each run; nil if consecutive
	src     []int64 // source of each run; nil if consecutive

	outer, dstStep, srcStep int
}

func (*runs) isTransfer() {}

// moveRuns distributes the runs over workers. If dst is listed, runs may overlap: those of one round are then copied in
// order, so that the last one wins for any number of workers.
func moveRuns[T any](p *op.Pool, r *runs, dst, src []T) {
	// Positions may be equal, and the last one wins: rounds are divided, not runs.
	if r.dst != nil {
		p.Rows(r.outer, max(1, grain/max(1, r.n*r.size)),
			func(from, to int) { someRuns(r, dst, src, from*r.n, to*r.n) })
		return
	}
	p.Rows(r.outer*r.n, max(1, grain/max(1, r.size)), func(from, to int) { someRuns(r, dst, src, from, to) })
}

// someRuns copies those from from to to, counted over all rounds.
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

// place is the offset of run i of that size.
func place(listed []int64, i, size int) int {
	if listed != nil {
		return int(listed[i])
	}
	return i * size
}
