package pass_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
)

// amounts is the option struct of two methods.
type amounts struct {
	pass.Selection
	Amount float64 `flag:"amount" default:"0.5" usage:"fraction"`
	Note   string  `flag:"note" usage:"text"`
	Data   string  `flag:"data" file:"yes" usage:"path"`
	Log    string  `flag:"log" recipe:"no" usage:"path"`

	method *pass.Method
}

func (o amounts) Method() *pass.Method                { return o.method }
func (amounts) Run(context.Context, *pass.Step) error { return nil }

func known() []*pass.Method {
	list := []*pass.Method{{Name: "prune", Command: "prune", Stage: pass.Prune}, {Name: "quantize", Stage: pass.Quantize}}
	for _, m := range list {
		m.New = func() pass.Options { return &amounts{method: m} }
	}
	return list
}

func TestRecipe(t *testing.T) {
	recipe, err := pass.ParseRecipe(known(),
		[]byte("steps:\n  - method: prune\n    amount: 0.25\n    skip: [a*, 'op:Gemm']\n  - method: quantize\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := recipe.Text(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "steps:\n- method: prune\n  amount: \"0.25\"\n  min-size: \"0\"\n  skip: a*,op:Gemm\n- method: quantize\n  " +
		"amount: \"0.5\"\n  min-size: \"0\"\n"
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	again, err := pass.ParseRecipe(known(), text)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := again.Text(nil); err != nil || string(same) != want {
		t.Errorf("the resolved recipe is not stable: %s, %v", same, err)
	}
}

// The keys of a step are in any order.
func TestMethodAfterItsOptions(t *testing.T) {
	var texts []string
	for _, text := range []string{"steps:\n - {method: prune, amount: 0.25}", "steps:\n - {amount: 0.25, method: prune}"} {
		recipe, err := pass.ParseRecipe(known(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := recipe.Text(nil)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(resolved))
	}
	if texts[0] != texts[1] {
		t.Errorf("got %s, want %s", texts[1], texts[0])
	}
}

func TestRecipeErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "a recipe needs a list called steps"},
		{"steps: []", "a recipe needs a list called steps"},
		{"step:\n - method: prune", "unknown field"},
		{"steps:\n  - amount: 1", "step 1: method is missing"},
		{"steps:\n  - method: zip", `step 1: unknown method "zip"`},
		{"steps:\n  - method: prune\n    amout: 1",
			`step 1: prune: unknown option "amout"; options of the method are amount, data, min-size, note, only, skip`},
		{"steps:\n  - method: prune\n    amount: much", `step 1: prune: option "amount": `},
		{"steps:\n  - method: prune\n    skip: '[a'", `"[a" is not a valid pattern`},
		{"steps:\n  - method: prune\n    amount: [1]", `step 1: prune: option "amount": it has a list as its value`},
		{"steps:\n  - method: prune\n    note: [a, b]", `option "note": it has a list as its value`},
		{"steps:\n  - method: prune\n    skip: [[a]]", `option "skip": item 1: it has a list as its value`},
		{"steps:\n  - method: prune\n    note: {a: b}", `option "note": it has a mapping as its value`},
		{"steps:\n  - method: prune\n    note:", `option "note": it has no value`},
		{"steps:\n  - method: [prune]", `unknown method "[prune]"`},
		{"steps:\n  - method: prune\n    log: /tmp/x",
			`option "log" is not supported in recipes, which write no files but the outputs; use mcompress prune --log`},
		{"steps:\n  - method: prune\n---\nsteps:\n  - method: quantize", "line 4: a second document"},
		{"a: &a [1]\nb: *a", "line 1: anchors and aliases are not supported"},
		{"steps:\n  - &step\n    method: prune\n  - <<: *step", "line 2: anchors"},
		{strings.Repeat("[", 20_000), "line 1: nested deeper than 32 levels"},
		{strings.Repeat("{a: ", 20_000), "nested deeper"},
		{strings.Repeat("- ", 20_000), "nested deeper"},
		{strings.Repeat("? ", 20_000), "nested deeper"},
		{strings.Repeat("a: ", 20_000), "nested deeper"},
		{strings.Repeat("]", 20_000) + strings.Repeat("[", 20_000), "line 1: "},
		{strings.Repeat("- a\n", 100_000), "more than 65536 items and keys"},
		{indented(200), "line 32: nested deeper"},
		{strings.Repeat("#", pass.MaxRecipe+1), "more than 1048576 bytes"},
		{"\xff\xfes\x00", "not UTF-8"},
		{"steps:\n  - method: quantize\n  - method: prune", "step 2: prune (prune) cannot follow quantize (quantize)"},
	} {
		_, err := pass.ParseRecipe(known(), []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: got %v, want one line with %q", c.text, err, c.want)
		}
	}
}

// indented has n mappings, each in the one of the line before.
func indented(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// A byte order mark, the markers of a document, and comments are no content.
func TestRecipeForms(t *testing.T) {
	for _, text := range []string{
		"\ufeffsteps:\n  - method: prune\n",
		"---\nsteps:\n  - method: prune\n...\n",
		"# a\n---\n# b\nsteps:\r\n  - {method: prune}\r\n---\n# c\n",
		`{"steps": [{"method": "prune", "skip": ["a", "b"]}]}`,
	} {
		if recipe, err := pass.ParseRecipe(known(), []byte(text)); err != nil || len(recipe.Steps) != 1 {
			t.Errorf("%q: %v, %v", text, recipe, err)
		}
	}
}

func TestRecipeTextOfFiles(t *testing.T) {
	method := known()[0]
	steps := []pass.Options{&amounts{method: method, Data: "/folder/data", Log: "log"}}
	text, err := (&pass.Recipe{Steps: steps}).Text(strings.ToUpper)
	want := "steps:\n- method: prune\n  amount: \"0.5\"\n  data: /FOLDER/DATA\n  min-size: \"0\"\n"
	if err != nil || string(text) != want {
		t.Errorf("got %s %v, want %s", text, err, want)
	}
}

func FuzzParseRecipe(f *testing.F) {
	for _, text := range []string{"steps:\n  - method: prune\n    skip: [a]",
		"steps: [{method: quantize, note: |\n  a\n}]", "? a\n: - b", "%YAML 1.2\n---\n!!map {}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		recipe, err := pass.ParseRecipe(known(), []byte(text))
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of several lines: %v", err)
		}
		if err == nil && len(recipe.Steps) == 0 {
			t.Error("no steps and no error")
		}
	})
}

func TestAnOptionGivenTwice(t *testing.T) {
	_, err := pass.ParseRecipe(known(), []byte("steps:\n  - method: prune\n    amount: 1\n    amount: 2"))
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want an error of one line", err)
	}
}
