package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcompress/mcompress/report"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"256MiB": 256 << 20, "10MB": 10e6, "10 mb": 10e6, "4096": 4096, "1.5GiB": 3 << 29} {
		var s Size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q is %d (%v), want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "plenty", "1 parsec", "99999999999999999999"} {
		var s Size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is taken for %d", text, s)
		}
	}
}

func TestFormats(t *testing.T) {
	f := Formats{Chosen: []string{"json"}, Known: []string{"html", "json"}}
	for text, want := range map[string][]string{"none": nil, "html,json,html": {"html", "json"}, "json": {"json"}} {
		if err := f.Set(text); err != nil || !slices.Equal(f.Chosen, want) {
			t.Errorf("%q is %v (%v), want %v", text, f.Chosen, err, want)
		}
	}
	for _, text := range []string{"", "pdf", "json,none", "json,"} {
		if err := f.Set(text); err == nil {
			t.Errorf("%q is taken for %v", text, f.Chosen)
		}
	}
}

func TestGateReplacesItsOwnLimit(t *testing.T) {
	var limits []report.Limit
	fraction := Gate{Name: "require-coverage", To: &limits}
	size := Gate{Name: "max-size", To: &limits}
	for _, set := range []struct {
		g    *Gate
		text string
	}{{&fraction, "0.5"}, {&size, "1KiB"}, {&fraction, "1"}} {
		if err := set.g.Set(set.text); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]report.Limit{{Name: "max-size", Bound: 1024}, {Name: "require-coverage", Bound: 1}}, limits); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"1.1", "-0.1", "NaN", "95%", ""} {
		if err := fraction.Set(text); err == nil {
			t.Errorf("a fraction of %q is accepted", text)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"quantize", "prune", "--method", "--only"}
	for word, want := range map[string]string{
		"quantise": "quantize", "qantize": "quantize", "prnue": "", "prun": "prune", "--metod": "--method", "--foo": "", "": "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%q is taken for %q, want %q", word, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	red := Style{On: true}.bad("é×")
	table := textTable{indent: " ", align: "lr"}
	table.add("a", "1", "x")
	table.add(red, "22")
	var b strings.Builder
	if err := table.write(&b); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), " a    1  x\n "+red+"  22\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnd(t *testing.T) {
	for want, words := range map[string][]string{"": nil, "a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"}} {
		if got := And(words); got != want {
			t.Errorf("%v is %q, want %q", words, got, want)
		}
	}
}

func TestTogether(t *testing.T) {
	for want, paths := range map[string][]string{
		"d/a.report.json":        {"d/a.report.json"},
		"d/a.report.{json,html}": {"d/a.report.json", "d/a.report.html"},
		"a.json b.html":          {"a.json", "b.html"},
	} {
		if got := together(paths); got != want {
			t.Errorf("%v is %q, want %q", paths, got, want)
		}
	}
}
