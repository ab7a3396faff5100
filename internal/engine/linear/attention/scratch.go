package attention

import (
	"unsafe"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Block sizes of queries. A block is large enough that packing its keys and values is cheap compared to the products,
// and its scores stay in the L2 cache unless there are very many keys.
const (
	fewRows, manyRows = 48, 240
	cached            = 1 << 16 // scores
	rowStep           = 12      // rows of a kernel tile
	causalBlocks      = 4       // of causal attention: they multiply 5/8 of the queries and keys
	causalSize        = 32      // elements of a query from which that saves more than the calls of further blocks cost
)

// parts is the division of a head into blocks, by its shape alone, and a worker's scratch memory in bytes.
type parts struct {
	rows, blocks    int
	scores, product int64
}

func partsOf[T Float](s Shape) parts {
	rows := min(max(cached/s.stride()/rowStep*rowStep, fewRows), manyRows, max(s.Queries, 1))
	if s.Causal && s.Size >= causalSize { // each block multiplies the keys up to its last query
		rows = min(rows, max(s.Queries/causalBlocks/rowStep*rowStep, fewRows))
	}
	var zero T
	return parts{
		rows:    rows,
		blocks:  (max(s.Queries, 0) + rows - 1) / rows,
		scores:  int64(rows) * int64(s.stride()) * int64(unsafe.Sizeof(zero)),
		product: aligned(arithmeticOf[T]().work(rows, s)),
	}
}

// stride is the number of elements between the scores of two queries: one per key, and one for a sink.
func (s Shape) stride() int { return (s.Keys + 16) / 16 * 16 }

func aligned(n int64) int64 { return (n + 63) / 64 * 64 }

// slot is the scratch memory of one worker in bytes.
func (p parts) slot() int64 { return p.scores + p.product }

// scratch is the scratch memory of one worker.
type scratch[T Float] struct {
	scores  []T
	product []byte
}

func scratchOf[T Float](p parts, work []byte, slot int) scratch[T] {
	work = work[int64(slot)*p.slot():][:p.slot()]
	return scratch[T]{kernel.Words[T](work[:p.scores]), work[p.scores:]}
}
