package block

import (
	"sync/atomic"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Grain is the number of elements below which waking another worker does not pay off, for the cheapest operations.
const Grain = 16 << 10

// Parallel splits n into pieces of grain and runs f on each of them, with exclusive scratch memory of size bytes. Work
// must include it for every worker.
func Parallel(c *op.Call, n, grain int, size int64, f func(s Scratch, from, to int)) {
	grain = max(grain, 1)
	pieces := (n + grain - 1) / grain
	switch pieces {
	case 0:
		return
	case 1:
		f(Scratch{c.Work[:size]}, 0, n)
		return
	}
	// Pieces of tensors of other types may take longer: a worker takes the next one when it is done, with the same
	// scratch memory. Results do not depend on who computes a piece.
	var next atomic.Int64
	c.Pool.For(min(c.Pool.Workers(), pieces), func(w int) {
		s := Scratch{c.Work[int64(w)*size : int64(w+1)*size]}
		for i := int(next.Add(1) - 1); i < pieces; i = int(next.Add(1) - 1) {
			f(s, i*grain, min(n, (i+1)*grain))
		}
	})
}
