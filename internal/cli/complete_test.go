package cli

import (
	"strings"
	"testing"
)

func TestComplete(t *testing.T) {
	choices := map[string][]string{
		"--color":           {"auto", "always"},
		"quantize --method": {"float16", "dynamic-int8"},
		"completion":        {"bash"},
	}
	s := Syntax{
		Global: map[string]bool{"json": false, "color": true},
		Commands: map[string]map[string]bool{
			"quantize":   {"method": true, "dry-run": false, "output": true, "o": true},
			"completion": {},
		},
	}
	for _, c := range []struct{ words, want string }{
		{"", "completion quantize"},
		{"q", "quantize"},
		{"--json|q", "quantize"},
		{"--color|a", "always auto"},
		{"quantize|", ""},
		{"quantize|--", "--color --dry-run --json --method --output"},
		{"quantize|m.onnx|--d", "--dry-run"},
		{"quantize|--method|", "dynamic-int8 float16"},
		{"quantize|--method|f", "float16"},
		{"quantize|--method=x|", ""},
		{"quantize|--output|", ""},
		{"quantize|--color|al", "always"},
		{"completion|", "bash"},
	} {
		got := strings.Join(Complete(s, choices, strings.Split(c.words, "|")), " ")
		if got != c.want {
			t.Errorf("%q gives %q, want %q", c.words, got, c.want)
		}
	}
}
