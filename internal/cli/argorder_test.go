package cli

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func sample() Syntax {
	return Syntax{
		Global:   map[string]bool{"json": false, "workers": true},
		Commands: map[string]map[string]bool{"quantize": {"method": true, "dry-run": false, "output": true, "o": true}, "prune": {"method": true}},
		Topics:   map[string]string{"prune": "method"},
	}
}

func TestArrange(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"quantize", "quantize"},
		{"quantize m --method x", "quantize --method x -- m"},
		{"quantize m --method=x n", "quantize --method=x -- m n"},
		{"quantize m -o out --json", "--json quantize -o out -- m"},
		{"quantize m --workers 2 --dry-run n", "--workers 2 quantize --dry-run -- m n"},
		{"--json quantize m", "--json quantize -- m"},
		{"quantize m -- --json -", "quantize -- m --json -"},
		{"quantize - m", "quantize -- - m"},
		{"quantize m --nope n", "quantize --nope -- m n"},
		{"--nope quantize m", "--nope quantize -- m"},
		{"other --method x", "other --method -- x"},
		{"quantize --method --dry-run m", "quantize --method --dry-run -- m"},
		{"quantize m --help --method x", "quantize --help"},
		{"prune m --help --method x", "prune --method x --help"},
		{"prune --method=x -h --nope", "prune --method=x --help"},
		{"-h", "--help"},
		{"-- m", "-- m"},
	} {
		got, err := Arrange(sample(), strings.Fields(c.in))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%q becomes %q (%v), want %q", c.in, strings.Join(got, " "), err, c.want)
		}
	}
}

func TestArrangeRequiresValues(t *testing.T) {
	for in, want := range map[string]string{
		"quantize m --method":    "quantize: flag needs a value: --method",
		"quantize --method -- m": "quantize: flag needs a value: --method",
		"--workers":              "flag needs a value: --workers",
	} {
		if _, err := Arrange(sample(), strings.Fields(in)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

// However flags and arguments are mixed, the same ones come out, each kind in its order,
// and a second time changes nothing.
func TestArrangeKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := rapid.SampledFrom([][]string{{"--json"}, {"--workers", "2"}, {"--workers=3"}})
		own := rapid.SampledFrom([][]string{{"--dry-run"}, {"--method", "x"}, {"-o", "--odd"}, {"--output=a"}})
		arg := rapid.SampledFrom([][]string{{"m.onnx"}, {"-"}, {"quantize"}})
		var globals, flags, args, line []string
		line = append(line, "quantize")
		for range rapid.IntRange(0, 8).Draw(t, "words") {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				w := flag.Draw(t, "global")
				globals, line = append(globals, w...), append(line, w...)
			case 1:
				w := own.Draw(t, "flag")
				flags, line = append(flags, w...), append(line, w...)
			case 2:
				w := arg.Draw(t, "argument")
				args, line = append(args, w...), append(line, w...)
			}
		}
		want := slices.Concat(globals, []string{"quantize"}, flags)
		if len(args) > 0 {
			want = slices.Concat(want, []string{"--"}, args)
		}
		got, err := Arrange(sample(), line)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q becomes %q (%v), want %q", line, got, err, want)
		}
		again, err := Arrange(sample(), got)
		if err != nil || !slices.Equal(again, got) {
			t.Fatalf("%q becomes %q the second time (%v)", got, again, err)
		}
	})
}
