package spmm

import (
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
