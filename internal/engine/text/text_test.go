package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// run runs one node with two outputs.
func run(typ string, attrs []*ir.Attr, in ...*ir.Array) ([]*ir.Array, error) {
	return optest.Run(Ops(), optest.Case{Type: typ, Version: 20, In: in, Attrs: attrs, Outputs: 2, Workers: 2})
}

func str(name, s string) *ir.Attr           { return &ir.Attr{Name: name, Type: ir.AttrString, S: s} }
func num(name string, i int64) *ir.Attr     { return &ir.Attr{Name: name, Type: ir.AttrInt, I: i} }
func nums(name string, i ...int64) *ir.Attr { return &ir.Attr{Name: name, Type: ir.AttrInts, Ints: i} }
func strs(name string, s ...string) *ir.Attr {
	return &ir.Attr{Name: name, Type: ir.AttrStrings, Strings: s}
}

func list(s ...string) *ir.Array { return ir.TextOf(s, int64(len(s))) }

// The expected parts are Python's str.split.
func TestSplitIsPythons(t *testing.T) {
	for _, c := range []struct {
		s     string
		attrs []*ir.Attr
		want  []string
	}{
		{"a  b c ", nil, []string{"a", "b", "c"}},
		{" a  b  c ", []*ir.Attr{num("maxsplit", 1)}, []string{"a", "b  c "}},
		{" a b", []*ir.Attr{num("maxsplit", 0)}, []string{"a b"}},
		{"", nil, nil},
		{"", []*ir.Attr{str("delimiter", "-")}, []string{""}},
		{"-a--b", []*ir.Attr{str("delimiter", "-")}, []string{"", "a", "", "b"}},
		{"a-b-c", []*ir.Attr{str("delimiter", "-"), num("maxsplit", 1)}, []string{"a", "b-c"}},
		{"a-b", []*ir.Attr{str("delimiter", "-"), num("maxsplit", 0)}, []string{"a-b"}},
	} {
		out, err := run("StringSplit", c.attrs, list(c.s))
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.View[int64](out[1])[0]; !slices.Equal(out[0].Text, c.want) || got != int64(len(c.want)) {
			t.Errorf("%q: %q, %d, want %q", c.s, out[0].Text, got, c.want)
		}
	}
}

func TestMatchesAreOfTheWholeString(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"a|ab", "ab", true}, {"a*?", "aaa", true}, {"b", "abc", false}, {"", "", true}, {`\Qa.b`, "a.b", true},
		{"a", "a\n", false}, {"(?i)É", "é", true},
	} {
		out, err := run("RegexFullMatch", []*ir.Attr{str("pattern", c.pattern)}, list(c.s))
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.View[bool](out[0])[0]; got != c.want {
			t.Errorf("%q matches %q: %t", c.pattern, c.s, got)
		}
	}
}

func TestStopWordsIgnoreCaseByDefault(t *testing.T) {
	in := list("The", "cat", "THE")
	for sensitive, want := range [][]string{{"CAT"}, {"THE", "CAT"}} {
		out, err := run("StringNormalizer", []*ir.Attr{strs("stopwords", "THE"),
			num("is_case_sensitive", int64(sensitive)), str("case_change_action", "UPPER")}, in)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out[0].Text, want) {
			t.Errorf("sensitive %d: %q, want %q", sensitive, out[0].Text, want)
		}
	}
}

func grams(mode string, more ...*ir.Attr) []*ir.Attr {
	return append(more, str("mode", mode), num("min_gram_length", 1), num("max_gram_length", 2),
		num("max_skip_count", 0),
		nums("ngram_counts", 0, 2), nums("ngram_indexes", 2, 0, 1), strs("pool_strings", "a", "b", "a", "b"),
		&ir.Attr{Name: "weights", Type: ir.AttrFloats, Floats: []float32{10, 20, 30}})
}

// Tokens a b a: column 2 counts a with weight 10, column 0 counts b with weight 20, column 1 counts the pair a b with
// weight 30.
func TestGramsAreWeighed(t *testing.T) {
	for mode, want := range map[string][]float32{"TF": {1, 1, 2}, "IDF": {20, 30, 10}, "TFIDF": {20, 30, 20}} {
		out, err := run("TfIdfVectorizer", grams(mode), list("a", "b", "a"))
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.View[float32](out[0]); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", mode, got, want)
		}
	}
}

func TestBadInputsAreErrors(t *testing.T) {
	numbers := ir.ArrayOf([]float32{1}, 1)
	for _, c := range []struct {
		typ   string
		attrs []*ir.Attr
		in    []*ir.Array
	}{
		{"StringConcat", nil, []*ir.Array{list("a"), nil}},
		{"StringConcat", nil, []*ir.Array{list("a", "b"), list("a", "b", "c")}},
		{"StringConcat", nil, []*ir.Array{list("a"), numbers}},
		{"StringSplit", nil, []*ir.Array{numbers}},
		{"StringNormalizer", nil, []*ir.Array{ir.TextOf([]string{"a"})}},
		{"StringNormalizer", []*ir.Attr{str("case_change_action", "TITLE")}, []*ir.Array{list("a")}},
		{"RegexFullMatch", []*ir.Attr{str("pattern", "a)(b")}, []*ir.Array{list("a")}},
		{"RegexFullMatch", nil, []*ir.Array{{Kind: ir.Sequence}}},
		{"TfIdfVectorizer", grams("NO"), []*ir.Array{list("a")}},
		{"TfIdfVectorizer", grams("TF"), []*ir.Array{numbers}},
		{"TfIdfVectorizer", append(grams("TF"), nums("ngram_indexes", 0, -1)), []*ir.Array{list("a")}},
		{"TfIdfVectorizer", append(grams("TF"), nums("ngram_counts", 0, 9)), []*ir.Array{list("a")}},
	} {
		if out, err := run(c.typ, c.attrs, c.in...); err == nil {
			t.Errorf("%s of %v gives %v", c.typ, c.in, out)
		}
	}
}

// The text of a result is bounded, whatever the memory limit. The long string is shared, so that the test allocates it
// once.
func TestConcatBoundsText(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for n, valid := range map[int]bool{maxText >> 20: true, maxText>>20 + 1: false} {
		if _, err := run("StringConcat", nil, list(slices.Repeat([]string{long}, n)...),
			list("")); (err == nil) != valid {
			t.Errorf("%d MiB: got %v", n, err)
		}
	}
}
