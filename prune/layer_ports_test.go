package prune

import "testing"

// Names form a series if one number in them grows by the same step.
func TestSeriesOfNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  series
		ok    bool
	}{
		{[]string{"past.0.key", "past.1.key", "past.2.key"}, series{"past.", ".key", 0, 1}, true},
		{[]string{"h2.c4", "h2.c6", "h2.c8"}, series{"h2.c", "", 4, 2}, true},
		{[]string{"9.k2", "10.k2"}, series{"", ".k2", 9, 1}, true},
		{[]string{"past.1.key", "past.1.key"}, series{}, false},
		{[]string{"past.2.key", "past.1.key"}, series{}, false},
		{[]string{"past.0.key", "past.1.key", "past.3.key"}, series{}, false},
		{[]string{"past.0.key", "past.1.key", "past.2.value"}, series{}, false},
		{[]string{"past.00.key", "past.01.key"}, series{}, false},
		{[]string{"first", "second"}, series{}, false},
	} {
		if got, ok := newSeries(c.names); got != c.want || ok != c.ok {
			t.Errorf("%q: got %+v, %v; want %+v, %v", c.names, got, ok, c.want, c.ok)
		}
	}
	s := series{prefix: "past.", suffix: ".key"}
	for name, want := range map[string]int{"past.0.key": 0, "past.12.key": 12, "past.-1.key": -1, "past.key": -2,
		"past..key": -2, "past.x.key": -2, "past.1.value": -2, "last.1.key": -2, "past.01.key": -2} {
		if got, ok := s.number(name); ok != (want != -2) || ok && got != want {
			t.Errorf("the number of %q is %d, %v; want %d", name, got, ok, want)
		}
	}
}
