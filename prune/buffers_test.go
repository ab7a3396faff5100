package prune

import "testing"

// A table that is put back is the next one, if it is long enough; two in use are never the same.
func TestTablesAreReused(t *testing.T) {
	var b buffers
	first := b.table(8)
	b.put(first)
	again, other := b.table(4), b.table(4)
	if &again[0] != &first[0] || len(again) != 4 || &other[0] == &first[0] {
		t.Error("the table is not reused, or twice")
	}
	b.put(again)
	if long := b.table(9); len(long) != 9 {
		t.Errorf("a table of %d counters, want 9", len(long))
	}
}
