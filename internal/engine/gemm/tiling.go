package gemm

// A Shape is that of one product: A is M×K, B is K×N, C is M×N.
type Shape struct{ M, N, K int }

// A tiling divides the result into tiles for the workers. It does not affect the result: a tile is summed over all of K
// by one worker.
type tiling struct {
	Shape
	rows, cols int // of a tile
	colStep    int // a tile but the last has a multiple of these columns
}

// Tiles are multiples of the kernel tiles of all CPUs, and take at least grain multiplications, some microseconds; more
// than tilesPerWorker would only pack more often.
const (
	rowStep, colStep = 12, 32
	maxCols          = 1024 // so that a block of B stays in the L2 or L3 cache
	grain            = 1 << 17
	tilesPerWorker   = 4
)

// newTiling divides until there are enough tiles for the workers, the longer side first. A tile has at most maxRows
// rows and maxCols columns.
func newTiling(s Shape, maxRows, maxCols, colStep, batch, workers int) tiling {
	g := tiling{s, min(max(s.M, 1), maxRows), min(max(s.N, 1), maxCols), colStep}
	for workers > 1 && batch*g.tiles() < tilesPerWorker*workers && g.rows*g.cols*max(s.K, 1) >= 2*grain {
		switch {
		// The longer side first: operands of a square tile are read least.
		case g.cols > colStep && (g.cols >= g.rows || g.rows <= rowStep):
			g.cols = roundUp((g.cols+1)/2, colStep)
		case g.rows > rowStep:
			g.rows = roundUp((g.rows+1)/2, rowStep)
		default:
			return g
		}
	}
	return g
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

func (g tiling) down() int { return (g.M + g.rows - 1) / g.rows }

func (g tiling) tiles() int { return g.down() * ((g.N + g.cols - 1) / g.cols) }

// span is a range of indices.
type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// tile is the rows and columns of tile i. The first half of the tiles, which one of two workers takes, reads either
// half of B, as tiles of the same columns are consecutive, or half of A if that is the larger part of both.
func (g tiling) tile(i int) (rows, cols span) {
	r, c := i%g.down(), i/g.down()
	// MiniLM of 32 texts takes 42.0 ms, with columns only 45.7 (2 workers).
	if across := g.tiles() / g.down(); 4*g.M > g.N {
		r, c = i/across, i%across
	}
	r, c = r*g.rows, c*g.cols
	return span{r, min(r+g.rows, g.M)}, span{c, min(c+g.cols, g.N)}
}

// blocks ranges over s in steps of size; once if s is empty, as an empty sum is a sum too.
func (s span) blocks(size int) func(yield func(span) bool) {
	return func(yield func(span) bool) {
		for at := s.from; ; at += size {
			// Also an empty block: without products, sums are 0 or the bias.
			if !yield(span{at, min(at+size, s.to)}) || at+size >= s.to {
				return
			}
		}
	}
}
