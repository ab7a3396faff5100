package backward

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A keyWindow is the keys around the position of each query, offset plus its index, that it attends to: left of them
// before it and right after it, unbounded if negative.
type keyWindow struct{ left, right, offset int }

func keyWindowOf(n *op.Node) (keyWindow, error) {
	w := [3]int64{n.Int("left_window_size", -1), n.Int("right_window_size", -1), n.Int("offset", 0)}
	for i, size := range w {
		if size > math.MaxInt32 || size < math.MinInt32 {
			return keyWindow{}, fmt.Errorf("attribute %s is %d",
				[]string{"left_window_size", "right_window_size", "offset"}[i], size)
		}
	}
	return keyWindow{int(w[0]), int(w[1]), int(w[2])}, nil
}

// keyRange is the range of keys that a query attends to; it is empty if from is not less than to.
func (p *attention) keyRange(query int) (from, to int) {
	to = p.keys
	if p.left >= 0 {
		from = max(p.offset+query-p.left, 0)
	}
	if p.right >= 0 {
		to = min(p.offset+query+p.right+1, p.keys)
	}
	return from, to
}

// A blockKeys is a block of queries, and the keys that any of them attends to.
type blockKeys struct{ query, queries, key, keys int }

func (p *attention) blocks() []blockKeys {
	var all []blockKeys
	for from, step := 0, p.block(); from < p.queries; from += step {
		rows := min(step, p.queries-from)
		// Both ends grow with the query: the first one has the first key, and the last one the last.
		first, _ := p.keyRange(from)
		_, last := p.keyRange(from + rows - 1)
		first = min(max(first, 0), p.keys)
		all = append(all, blockKeys{from, rows, first, max(last-first, 0)})
	}
	return all
}

// capScores replaces scores by limit·tanh(score/limit), and stores the derivatives in slopes unless it is nil.
func capScores[T number](row, slopes []T, limit T) {
	if x, ok := any(row).([]float32); ok {
		kernel.MulScalar(x, x, float32(1/limit))
		kernel.Tanh(x, x)
	} else {
		for i, v := range row {
			row[i] = T(math.Tanh(float64(v / limit)))
		}
	}
	for i := range slopes {
		slopes[i] = 1 - row[i]*row[i]
	}
	for i := range row {
		row[i] *= limit
	}
}
