package cli

import (
	"flag"
	"strings"
	"testing"
)

func TestComplete(t *testing.T) {
	set := func(declare ...func(*flag.FlagSet)) *flag.FlagSet {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		for _, d := range declare {
			d(fs)
		}
		return fs
	}
	global := func(fs *flag.FlagSet) {
		fs.Bool("json", false, "")
		fs.Var(&Enum{Words: []string{"auto", "always"}}, "color", "")
	}
	own := func(fs *flag.FlagSet) {
		fs.Var(&Enum{Words: []string{"float16", "dynamic-int8"}}, "method", "")
		fs.Bool("dry-run", false, "")
		fs.String("output", "", "")
		fs.String("o", "", "")
	}
	sets := map[string]*flag.FlagSet{"": set(global), "quantize": set(global, own), "completion": set(global)}
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
		{"nope|--", ""},
	} {
		got := strings.Join(Complete(sets, map[string][]string{"completion": {"bash"}}, strings.Split(c.words, "|")), " ")
		if got != c.want {
			t.Errorf("%q gives %q, want %q", c.words, got, c.want)
		}
	}
}
