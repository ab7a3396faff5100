package linear

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A mask by ends and starts excludes the keys before and after them, in blocks of keys that start anywhere.
func TestIndexMaskOfEndsAndStarts(t *testing.T) {
	a := ir.ArrayOf([]int32{3, 5, 1, 2}, 4)
	m, err := indexMaskOf(a, 2, 1, 6)
	if err != nil {
		t.Fatal(err)
	}
	m.index, m.filter = ir.View[int32](a), -1
	for batch, want := range [][]float32{{-1, 0, 0, -1, -1, -1}, {-1, -1, 0, 0, 0, -1}} {
		for key := range want {
			got := make([]float32, len(want)-key)
			m.of(batch)(got, 0, key)
			if !slices.Equal(got, want[key:]) {
				t.Errorf("batch %d, keys from %d on: %v, want %v", batch, key, got, want[key:])
			}
		}
	}
}
