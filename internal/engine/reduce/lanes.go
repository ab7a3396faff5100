package reduce

import (
	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// lanes is a tensor as outer × n × inner: a lane is n elements with stride inner.
type lanes struct{ outer, n, inner int }

// lanesOf are the lanes of a along an axis, counted from the first.
func lanesOf(a *ir.Array, axis int) lanes {
	return lanes{
		outer: int(op.Product(a.Shape[:axis])),
		n:     int(a.Shape[axis]),
		inner: int(op.Product(a.Shape[axis+1:])),
	}
}

// Lanes that are not contiguous are copied to and from a buffer, several adjacent ones at a time: as many as share a
// cache line, memory permitting.
const (
	tileLanes = 16
	tileSize  = 64 << 10
)

// pad is the distance of lanes in a tile in excess of their length: distances that are multiples of the page size would
// map them to few cache sets.
const pad = 16

func (l lanes) tile() int { return max(1, min(l.inner, tileLanes, tileSize/max(l.n, 1))) }

func (l lanes) tiles() int { return (l.inner + l.tile() - 1) / l.tile() }

// bytes is the scratch memory of a worker for lanes of type dt.
func (l lanes) bytes(dt ir.DType) int64 {
	if l.inner == 1 && block.Direct(dt) {
		return 0
	}
	return block.Bytes[float64]((l.n+pad)*l.tile()) + block.Bytes[float64](tileLanes)
}

// grain is the number of lanes per task, if an element costs that many additions.
func (l lanes) grain(cost int) int { return block.Grain / max(l.n*cost, 1) }

// along computes output 0 from input 0 lane by lane. f's dst may be its x.
func along[T ir.Element](c *op.Call, l lanes, cost int, f func(dst, x []T)) error {
	in, out := block.Read[T](c.In[0]), block.Write[T](c.Out[0])
	size := l.bytes(c.In[0].DType)
	if l.inner == 1 {
		block.Parallel(c, l.outer, l.grain(cost), size, func(s block.Scratch, from, to int) {
			var buf []T
			if size > 0 {
				buf = block.Take[T](&s, l.n)
			}
			for i := from; i < to; i++ {
				y := out.Block(buf, i*l.n, l.n)
				f(y, in.Block(buf, i*l.n, l.n))
				out.Done(i*l.n, y)
			}
		})
		return nil
	}
	block.Parallel(c, l.outer*l.tiles(), l.grain(cost*l.tile()), size, func(s block.Scratch, from, to int) {
		buf, part := block.Take[T](&s, (l.n+pad)*l.tile()), block.Take[T](&s, tileLanes)
		for i := from; i < to; i++ {
			at, count := l.at(i)
			load(l, buf, in, at, count, part)
			for k := range count {
				lane := buf[k*(l.n+pad):][:l.n]
				f(lane, lane)
			}
			store(l, out, buf, at, count, part)
		}
	})
	return nil
}

// at is the first element of a tile, and the number of its lanes.
func (l lanes) at(tile int) (at, count int) {
	first := tile % l.tiles() * l.tile()
	return tile/l.tiles()*l.n*l.inner + first, min(l.tile(), l.inner-first)
}

// load copies count adjacent lanes to consecutive parts of buf.
func load[T ir.Element](l lanes, buf []T, in block.Loader[T], at, count int, part []T) {
	for i := range l.n {
		for k, v := range in.Block(part, at+i*l.inner, count) {
			// Lanes become rows: what f reads is contiguous, and a line of the cache of the tensor is read once for all its
			// lanes.
			buf[k*(l.n+pad)+i] = v
		}
	}
}

// store is the inverse of load.
func store[T ir.Element](l lanes, out block.Writer[T], buf []T, at, count int, part []T) {
	for i := range l.n {
		row := out.Block(part, at+i*l.inner, count)
		for k := range row {
			row[k] = buf[k*(l.n+pad)+i]
		}
		out.Done(at+i*l.inner, row)
	}
}

// eachLane calls f with the index and the elements of every lane of input 0, and extra bytes of scratch memory.
func eachLane[T ir.Element](c *op.Call, l lanes, cost int, extra int64, f func(i int, x []T, spare block.Scratch)) {
	in := block.Read[T](c.In[0])
	size := l.bytes(c.In[0].DType)
	block.Parallel(c, l.outer*l.tiles(), l.grain(cost*l.tile()), size+extra, func(s block.Scratch, from, to int) {
		var buf, part []T
		if size > 0 {
			buf, part = block.Take[T](&s, (l.n+pad)*l.tile()), block.Take[T](&s, tileLanes)
		}
		for i := from; i < to; i++ {
			if l.inner == 1 {
				f(i, in.Block(buf, i*l.n, l.n), s)
				continue
			}
			at, count := l.at(i)
			load(l, buf, in, at, count, part)
			first := i/l.tiles()*l.inner + i%l.tiles()*l.tile()
			for k := range count {
				f(first+k, buf[k*(l.n+pad):][:l.n], s)
			}
		}
	})
}
