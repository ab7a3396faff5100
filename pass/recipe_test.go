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

	method *pass.Method
}

func (o amounts) Method() *pass.Method                { return o.method }
func (amounts) Run(context.Context, *pass.Step) error { return nil }

func known() []*pass.Method {
	list := []*pass.Method{{Name: "prune", Stage: pass.Prune}, {Name: "quantize", Stage: pass.Quantize}}
	for _, m := range list {
		m.New = func() pass.Options { return &amounts{method: m} }
	}
	return list
}

func TestRecipe(t *testing.T) {
	steps, _, err := pass.ParseRecipe(known(), []byte("steps:\n  - method: prune\n    amount: 0.25\n    skip: [a*, 'op:Gemm']\n  - method: quantize\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := pass.RecipeText(steps)
	if err != nil {
		t.Fatal(err)
	}
	want := "steps:\n- method: prune\n  amount: \"0.25\"\n  min-size: \"0\"\n  skip: a*,op:Gemm\n- method: quantize\n  amount: \"0.5\"\n  min-size: \"0\"\n"
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	again, _, err := pass.ParseRecipe(known(), text)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := pass.RecipeText(again); err != nil || string(same) != want {
		t.Errorf("the resolved recipe is not stable: %s, %v", same, err)
	}
}

func TestRecipeErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "a recipe needs a list called steps"},
		{"steps: []", "a recipe needs a list called steps"},
		{"step:\n - method: prune", "unknown field"},
		{"steps:\n  - amount: 1", "step 1: method is missing"},
		{"steps:\n  - method: zip", `step 1: unknown method "zip"`},
		{"steps:\n  - method: prune\n    amout: 1", `step 1: prune: unknown option "amout"; options of the method are amount, min-size, note, only, skip`},
		{"steps:\n  - method: prune\n    amount: much", `step 1: prune: option "amount": `},
		{"steps:\n  - method: prune\n    skip: '[a'", `"[a" is not a valid pattern`},
		{"steps:\n  - method: quantize\n  - method: prune", "step 2: prune (prune) cannot follow quantize (quantize)"},
	} {
		_, _, err := pass.ParseRecipe(known(), []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want one line with %q", c.text, err, c.want)
		}
	}
}

func TestAnOptionGivenTwice(t *testing.T) {
	_, _, err := pass.ParseRecipe(known(), []byte("steps:\n  - method: prune\n    amount: 1\n    amount: 2"))
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want an error of one line", err)
	}
}
