package cli

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
)

type firstOptions struct {
	pass.Selection
	Both int  `flag:"both" default:"1"`
	One  bool `flag:"one"`
}

type secondOptions struct {
	pass.Selection
	Both int `flag:"both" default:"1"`
	Two  int `flag:"two" default:"2"`
}

var (
	firstMethod  = &pass.Method{Name: "first", New: func() pass.Options { return &firstOptions{} }}
	secondMethod = &pass.Method{Name: "second", New: func() pass.Options { return &secondOptions{} }}
)

func (firstOptions) Method() *pass.Method                   { return firstMethod }
func (firstOptions) Run(context.Context, *pass.Step) error  { return nil }
func (secondOptions) Method() *pass.Method                  { return secondMethod }
func (secondOptions) Run(context.Context, *pass.Step) error { return nil }

// twoMethods have the options of every method, one of both and one each.
func twoMethods() []*pass.Method { return []*pass.Method{firstMethod, secondMethod} }

func give(t *testing.T, o *MethodOptions, option, text string) {
	t.Helper()
	for _, offer := range o.Offers() {
		if offer.Name == option {
			if err := offer.Value.Set(text); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("there is no option %s", option)
}

func TestOffersListTheirMethods(t *testing.T) {
	o := &MethodOptions{Methods: twoMethods()}
	want := map[string]string{"both": "", "one": "first", "two": "second", "only": "", "skip": "", "min-size": ""}
	offers := o.Offers()
	if len(offers) != len(want) {
		t.Errorf("%d offers, want %d", len(offers), len(want))
	}
	for _, offer := range offers {
		if got := strings.Join(offer.Methods, ","); got != want[offer.Name] {
			t.Errorf("%s is offered by %q, want %q", offer.Name, got, want[offer.Name])
		}
		if got, want := IsBool(offer.Flag), offer.Name == "one"; got != want {
			t.Errorf("%s is a bool: %t, want %t", offer.Name, got, want)
		}
	}
}

func TestStepTakesWhatWasGiven(t *testing.T) {
	o := &MethodOptions{Methods: twoMethods()}
	give(t, o, "two", "5")
	give(t, o, "only", "a")
	give(t, o, "only", "b,c")
	s, err := o.Step("second")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(pass.Values(s), func(o pass.Option) bool { return o.Name == "two" && o.Value == "5" }) {
		t.Errorf("the options are %v, want two = 5", pass.Values(s))
	}
	if got := s.Selected().Only; !slices.Equal(got, pass.Globs{"a", "b", "c"}) {
		t.Errorf("only is %v", got)
	}
}

func TestStepNamesTheMistake(t *testing.T) {
	for _, c := range []struct{ method, option, text, want string }{
		{"first", "two", "5", "first: --two is an option of second"},
		{"second", "both", "x", `second: invalid value "x" for --both: parse error`},
		{"third", "both", "1", `unknown method "third"; there are first and second`},
	} {
		o := &MethodOptions{Methods: twoMethods()}
		give(t, o, c.option, c.text)
		if _, err := o.Step(c.method); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
