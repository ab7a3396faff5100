package cli

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A recorder is a flag that appends its values to a list.
type recorder struct {
	name string
	bool bool
	to   *[]string
}

func (r recorder) String() string   { return "" }
func (r recorder) IsBoolFlag() bool { return r.bool }
func (r recorder) Set(value string) error {
	*r.to = append(*r.to, r.name+"="+value)
	return nil
}

// recorded returns a set of flags and the list of their values in the order of the command line.
func recorded() (*flag.FlagSet, *[]string) {
	fs, list := flag.NewFlagSet("", flag.ContinueOnError), &[]string{}
	fs.SetOutput(io.Discard)
	for name, isBool := range map[string]bool{"json": true, "dry-run": true, "method": false, "o": false} {
		fs.Var(recorder{name, isBool, list}, name, "")
	}
	return fs, list
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ in, flags, args string }{
		{"", "", ""},
		{"m --method x", "method=x", "m"},
		{"m --method=x n", "method=x", "m n"},
		{"m -o out --json", "o=out json=true", "m"},
		{"--dry-run m --json n", "dry-run=true json=true", "m n"},
		{"m -- --json -", "", "m --json -"},
		{"-- m", "", "m"},
		{"- m", "", "- m"},
		{"--method --dry-run m", "method=--dry-run", "m"},
	} {
		fs, list := recorded()
		if err := Parse(fs, strings.Fields(c.in)); err != nil {
			t.Errorf("%q: %v", c.in, err)
		}
		if flags, args := strings.Join(*list, " "), strings.Join(fs.Args(), " "); flags != c.flags || args != c.args {
			t.Errorf("%q: flags %q, arguments %q; want %q and %q", c.in, flags, args, c.flags, c.args)
		}
	}
}

func TestParseReportsErrors(t *testing.T) {
	for in, want := range map[string]string{
		"m --method": "flag needs an argument: -method",
		"m --nope n": "flag provided but not defined: -nope",
	} {
		fs, _ := recorded()
		if err := Parse(fs, strings.Fields(in)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

// However flags and arguments are mixed, all are parsed, each kind in its order.
func TestParseKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := map[string]string{"--json": "json=true", "--method x": "method=x", "--method=y": "method=y", "-o --odd": "o=--odd", "m.onnx": "", "-": "", "quantize": ""}
		var line, flags, args []string
		for range rapid.IntRange(0, 12).Draw(t, "words") {
			w := rapid.SampledFrom([]string{"--json", "--method x", "--method=y", "-o --odd", "m.onnx", "-", "quantize"}).Draw(t, "word")
			line = append(line, strings.Fields(w)...)
			if words[w] == "" {
				args = append(args, w)
			} else {
				flags = append(flags, words[w])
			}
		}
		fs, list := recorded()
		if err := Parse(fs, line); err != nil || !slices.Equal(*list, flags) || !slices.Equal(fs.Args(), args) {
			t.Fatalf("%q: flags %q, arguments %q (%v); want %q and %q", line, *list, fs.Args(), err, flags, args)
		}
	})
}
