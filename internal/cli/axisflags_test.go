package cli

import (
	"maps"
	"slices"
	"testing"
)

func TestCounts(t *testing.T) {
	c := Counts{7}
	for text, want := range map[string]Counts{"1": {1}, "1,8,32": {1, 8, 32}, "2, 4": {2, 4}} {
		if err := c.Set(text); err != nil || !slices.Equal(c, want) {
			t.Errorf("%q is %v (%v), want %v", text, c, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "1,", "1;2", "2.5", "9223372036854775808"} {
		if err := c.Set(text); err == nil {
			t.Errorf("%q is taken for %v", text, c)
		}
	}
}

func TestDims(t *testing.T) {
	var d Dims
	for _, text := range []string{"batch=8", "past + seq=16", "batch=4", "none=0"} {
		if err := d.Set(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if want := (Dims{"batch": 4, "past + seq": 16, "none": 0}); !maps.Equal(d, want) {
		t.Errorf("got %v, want %v", d, want)
	}
	if got := d.String(); got != "batch=4,none=0,past + seq=16" {
		t.Errorf("got %q", got)
	}
	for _, text := range []string{"", "batch", "=8", "batch=", "batch=x", "batch=-1"} {
		if err := d.Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
