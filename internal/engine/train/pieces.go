package train

import (
	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// piece is the number of elements per task and per partial sum.
const piece = 1 << 14

// pieces returns the number of pieces of n elements.
func pieces(n int) int { return (n + piece - 1) / piece }

// sumPieces adds the results of f for all pieces, in order. parts is scratch for as many.
func sumPieces(p *op.Pool, n int, parts []float64, f func(from, to int) float64) float64 {
	// Pieces of a fixed size, added in order: the sum does not depend on the number of workers.
	p.For(len(parts), func(i int) { parts[i] = f(i*piece, min(n, (i+1)*piece)) })
	return total(parts)
}

// partial returns the scratch for sumPieces of n elements.
func partial(c *op.Call, n int) []float64 {
	return block.Words[float64](c.Work, pieces(n))
}

func total(parts []float64) float64 {
	sum := 0.0
	for _, x := range parts {
		sum += x
	}
	return sum
}
