package cli

import (
	"flag"
	"testing"
)

func TestFlagsOfNumbers(t *testing.T) {
	for _, c := range []struct {
		value flag.Value
		texts []string
		want  string // after the last one; empty if that is no value
	}{
		{&Numbers{}, []string{"0.485, 1e-3,-2"}, "0.485,0.001,-2"},
		{&Numbers{}, []string{"1", "2,3"}, "2,3"},
		{&Numbers{}, []string{"1,,2"}, ""},
		{&Numbers{}, []string{"NaN"}, ""},
		{&Numbers{}, []string{"1e999"}, ""},
		{&Words{}, []string{"a,b c"}, "a,b c"},
		{&Words{}, []string{"a,,b"}, ""},
		{new(Values), []string{"mask=1", "a=b=0.5"}, "a=b=0.5,mask=1"},
		{new(Values), []string{"mask=1", "mask=2"}, "mask=2"},
		{new(Values), []string{"mask"}, ""},
		{new(Values), []string{"=1"}, ""},
		{new(Values), []string{"mask=inf"}, ""},
	} {
		var err error
		for _, text := range c.texts {
			err = c.value.Set(text)
		}
		if (err != nil) != (c.want == "") || err == nil && c.value.String() != c.want {
			t.Errorf("%q: got %s, %v; want %q", c.texts, c.value, err, c.want)
		}
	}
}
