package spmm

import (
	"fmt"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
)

// The scratch memory of each worker starts at a cache line, as its panels do.
func TestSlotsAreWholeCacheLines(t *testing.T) {
	for rows := range 200 {
		for cols := range 2 * kernel.SparseCols {
			if n := slot(rows, cols); n%kernel.GemmPanel != 0 {
				t.Fatalf("%d rows, %d columns: %d elements", rows, cols, n)
			}
		}
	}
}

// Rows are divided into as few parts as give each worker four tasks, if the parts have 128 rows on average, and not for
// a single worker.
func TestPieces(t *testing.T) {
	for workers := 1; workers <= 9; workers++ {
		for tiles := 1; tiles <= 40; tiles++ {
			for _, rows := range []int{1, 127, 128, 255, 256, 1000, 1 << 20} {
				want := 1
				for workers > 1 && tiles*want < 4*workers && rows >= 128*(want+1) {
					want++
				}
				if got := pieces(rows, tiles, workers); got != want {
					t.Fatalf("%d rows, %d tiles, %d workers: %d parts, want %d", rows, tiles, workers, got, want)
				}
			}
		}
	}
}

// Parts have about as many elements, and at most the rows for which a task has memory.
func TestPartsOfRows(t *testing.T) {
	for _, c := range []struct {
		groups, n int
		want      string // the numbers of groups of the parts
	}{{1, 1, "[1]"}, {1, 4, "[1]"}, {8, 1, "[8]"}, {9, 1, "[8 1]"}, {17, 1, "[8 8 1]"}, {8, 2, "[5 3]"},
		{8, 8, "[2 2 2 2]"}} {
		m := &Matrix{}
		for i := range c.groups {
			m.groups = append(m.groups, group{from: i * groupRows, to: (i + 1) * groupRows, nonzeros: 10})
		}
		var got []int
		for _, part := range m.parts(c.n) {
			got = append(got, len(part))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%d groups of %d rows in %d parts: %v, want %s", c.groups, groupRows, c.n, got, c.want)
		}
	}
}
