package attention

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// A Float is a type that attention is computed in.
type Float interface{ float32 | float64 }

// A Shape is that of one head, and the same for all heads of a call.
type Shape struct {
	Queries, Keys int  // numbers of tokens
	Size, Value   int  // elements of a query or key, and of a value
	Causal        bool // the key ranges of queries end at their own position, mostly
}

// A Head is one head of one batch.
type Head[T Float] struct {
	Q, K, V gemm.Matrix[T] // Queries×Size, Keys×Size, Keys×Value
	Y       []T            // Queries×Value, the result
	Stride  int            // elements between rows of Y

	Mask     Mask[T]  // nil for none
	KeyRange KeyRange // nil for all keys
	Sink     []T      // of one element: a score besides those of the keys, whose value is zero
	Probe    []T      // Queries×Keys, scores at Options.Stage; nil for none
}

// A Mask modifies the scores of one query for the keys from key on, mostly by adding to them. Several workers call it
// concurrently.
type Mask[T Float] func(scores []T, query, key int)

// KeyRange is the range of keys that a query attends to. The other keys do not affect the result.
type KeyRange func(query int) (from, to int)

// A Stage is a point at which scores are copied to Head.Probe.
type Stage int

// The stages in their order.
const (
	Raw     Stage = iota // scaled product
	Capped               // after the cap
	Masked               // after mask and key range; excluded scores are -Inf
	Weights              // after softmax
)

// Options are the same for all heads of a call.
type Options[T Float] struct {
	Scale   T
	Cap     T // scores become Cap·tanh(score/Cap) before they are masked; 0 for no cap
	Stage   Stage
	Softmax func(row []T) // in place; nil for the default of T
	Zeros   bool          // a query whose scores are all -Inf gives zeros; else NaN, like a plain softmax
}

// Work is the size of Run's scratch memory in bytes.
func Work[T Float](s Shape, heads, workers int) int64 {
	p := partsOf[T](s)
	return int64(min(workers, heads*p.blocks)) * p.slot()
}

// Run computes all heads, sharing blocks of their queries over p. work is scratch memory of the size that Work returns;
// it need not be cleared. Outputs must not overlap one another or operands.
func Run[T Float](p *op.Pool, s Shape, work []byte, o Options[T], heads []Head[T]) {
	if s.Queries <= 0 || s.Value <= 0 || len(heads) == 0 {
		return
	}
	a := arithmeticOf[T]()
	if o.Softmax == nil {
		o.Softmax = a.softmax
	}
	parts := partsOf[T](s)
	p.Slots(len(heads)*parts.blocks, func(task, slot int) {
		from := task % parts.blocks * parts.rows
		b := block[T]{
			Head: &heads[task/parts.blocks], Options: &o, arithmetic: a, shape: s,
			work: scratchOf[T](parts, work, slot),
			from: from, to: min(from+parts.rows, s.Queries),
		}
		b.run()
	})
}

// A block is some queries of a head during the computation of their result.
type block[T Float] struct {
	*Head[T]
	*Options[T]
	arithmetic[T]
	shape    Shape
	work     scratch[T]
	from, to int // queries
	first    int // the keys from first to last: those that any of the queries attends to
	last     int
}

func (b *block[T]) run() {
	// Keys that no query of the block attends to are neither multiplied nor read: with causal masks half of them.
	b.first, b.last = b.keys()
	m, keys, stride := b.to-b.from, b.last-b.first, b.shape.stride()
	q, k, v := b.Q, b.K, b.V
	q.Data, k.Data, v.Data = part(q.Data, b.from*q.Row), part(k.Data, b.first*k.Row), part(v.Data, b.first*v.Row)
	b.compare(b.work.product, gemm.Shape{M: m, N: keys, K: b.shape.Size}, q, k, b.work.scores, stride, b.Scale)
	for i := range m {
		// One element more for the sink, and capacity for whole vectors of the softmax.
		b.weigh(b.work.scores[i*stride:][:keys+1:stride], b.from+i)
	}
	weights := gemm.Rows(b.work.scores, stride)
	b.multiply(b.work.product, gemm.Shape{M: m, N: b.shape.Value, K: keys}, weights, v, b.Y[b.from*b.Stride:], b.Stride)
}

// part is x from i on; empty if a matrix without rows ends before.
func part[T any](x []T, i int) []T { return x[min(i, len(x)):] }

// keys is the range of keys that any query of the block attends to. With a probe it is all keys.
func (b *block[T]) keys() (first, last int) {
	if b.KeyRange == nil || b.Probe != nil {
		return 0, b.shape.Keys
	}
	first = b.shape.Keys
	for i := b.from; i < b.to; i++ {
		if from, to := b.keyRange(i); from < to {
			first, last = min(first, from), max(last, to)
		}
	}
	return min(first, last), last
}

// keyRange is the range of keys of one query.
func (b *block[T]) keyRange(query int) (from, to int) {
	if b.KeyRange == nil {
		return 0, b.shape.Keys
	}
	from, to = b.KeyRange(query)
	return max(from, 0), min(to, b.shape.Keys)
}

// weigh turns the scores of one query into the weights of values. row has one element more than there are keys, and its
// capacity may be written.
func (b *block[T]) weigh(row []T, query int) {
	scores := row[:len(row)-1]
	// In the order of the stages of the specification.
	b.probe(Raw, scores, query)
	if b.Cap != 0 {
		b.cap(scores, b.Cap)
	}
	b.probe(Capped, scores, query)
	if b.Mask != nil {
		b.Mask(scores, query, b.first)
	}
	from, to := b.keyRange(query)
	from, to = max(from-b.first, 0), min(to-b.first, len(scores))
	// No key: all scores are -Inf, and the softmax gives NaN or zeros by Options.Zeros.
	if from >= to {
		from, to = 0, 0
	}
	fill(scores[:from], -inf[T]())
	fill(scores[to:], -inf[T]())
	b.probe(Masked, scores, query)
	b.softmax(row[from : to+1])
	// Weights of excluded keys, whose values are multiplied with the others of the block.
	clear(scores[:from])
	clear(scores[to:])
	b.probe(Weights, scores, query)
}

// softmax is that of the scores and of the sink, which is the element after them.
func (b *block[T]) softmax(row []T) {
	scores := row[:len(row)-1]
	if b.Sink != nil {
		row[len(scores)] = b.Sink[0]
		// The sink takes part in the maximum and the sum, and has no value.
		scores = row
	}
	if b.Zeros && b.allMasked(scores) {
		clear(scores)
		return
	}
	b.Softmax(padded(scores, b.lanes))
}

// padded is a row with -Inf after its end, up to a multiple of lanes or its capacity: functions of whole vectors are
// faster, and exponentials of -Inf add nothing to sums.
func padded[T Float](row []T, lanes int) []T {
	n := len(row)
	row = row[:min((n+lanes-1)/lanes*lanes, cap(row))]
	fill(row[n:], -inf[T]())
	return row
}

// allMasked reports whether all scores are -Inf.
func (b *block[T]) allMasked(scores []T) bool {
	return b.arithmetic.maximum(scores) == -inf[T]()
}

// probe copies the scores of a stage to Head.Probe.
func (b *block[T]) probe(s Stage, scores []T, query int) {
	if b.Probe != nil && b.Stage == s {
		copy(b.Probe[query*b.shape.Keys:], scores)
	}
}

func fill[T Float](x []T, v T) {
	for i := range x {
		x[i] = v
	}
}

func inf[T Float]() T { return T(math.Inf(1)) }
