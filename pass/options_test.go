package pass_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A factor is an option with a parser of its own.
type factor float64

func (f *factor) String() string { return fmt.Sprintf("%gx", float64(*f)) }

func (f *factor) Set(s string) error {
	_, err := fmt.Sscanf(s, "%gx", (*float64)(f))
	return err
}

// group is options that several methods have.
type group struct {
	Samples int    `flag:"samples" default:"128" usage:"'number' of samples"`
	Rule    string `flag:"rule" default:"mse" enum:"mse,minmax" usage:"'rule' of ranges"`
}

// everyKind is an option struct with an option of each kind.
type everyKind struct {
	pass.Selection
	group   `defaults:"samples=8"`
	Fast    bool       `flag:"fast" usage:"skip the slow part"`
	NoOrder bool       `flag:"order,not" usage:"the weights' order"`
	Seed    uint64     `flag:"seed" usage:"'number' that seeds the random generator"`
	Size    int64      `flag:"size" default:"32" usage:"block 'size' of the layers' weights"`
	Ratio   float64    `flag:"ratio" default:"0.5" usage:"fraction"`
	Name    string     `flag:"name" usage:"text"`
	Drop    *float64   `flag:"drop" default:"1.5" usage:"zero differs from the default"`
	Limit   *int       `flag:"limit" usage:"none by default"`
	Scale   factor     `flag:"scale" default:"2x" usage:"a flag.Value"`
	Level   flavour    `flag:"level" default:"low" enum:"low,high" usage:"a named string"`
	Ran     *everyKind // not an option: Run stores the struct that it was called on
}

type flavour string

var kinds = &pass.Method{Name: "kinds", Stage: pass.Prune, New: func() pass.Options { return &everyKind{} }}

func (everyKind) Method() *pass.Method { return kinds }

func (o everyKind) Run(context.Context, *pass.Step) error {
	*o.Ran = o
	return nil
}

func (o everyKind) Check() error {
	if o.Ratio > 1 {
		return errors.New("--ratio is above 1")
	}
	return nil
}

// ran is the struct that the pipeline ran o as.
func ran(t *testing.T, o everyKind) everyKind {
	t.Helper()
	var got everyKind
	o.Ran = &got
	if _, err := run(t, product(), pass.Environment{}, o); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDefaultsReplaceZeroValues(t *testing.T) {
	got := ran(t, everyKind{})
	if got.Samples != 8 || got.Rule != "mse" || got.Size != 32 || got.Ratio != 0.5 || *got.Drop != 1.5 ||
		got.Limit != nil || got.Scale != 2 || got.Level != "low" || got.NoOrder {
		t.Errorf("got %+v", got)
	}
	zero := 0.0
	got = ran(t, everyKind{Drop: &zero, Ratio: 0.25, group: group{Rule: "minmax"}})
	if *got.Drop != 0 || got.Ratio != 0.25 || got.Rule != "minmax" || got.Samples != 8 {
		t.Errorf("values of the caller were replaced: %+v", got)
	}
}

func TestOptionsFromText(t *testing.T) {
	o, err := pass.NewStep(kinds, func(fs *flag.FlagSet) error {
		return fs.Parse(strings.Fields("-fast -order=false -seed=7 -size=0x10 -ratio=0.25 -name=x -drop=0 -limit=0 " +
			"-scale=3x -level=high -samples=4 -rule=minmax -skip=a -skip=b,c -min-size=9"))
	})
	if err != nil {
		t.Fatal(err)
	}
	var got everyKind
	e := o.(*everyKind)
	e.Ran = &got
	if _, err := run(t, product(), pass.Environment{}, o); err != nil {
		t.Fatal(err)
	}
	if !got.Fast || !got.NoOrder || got.Seed != 7 || got.Size != 16 || got.Ratio != 0.25 || got.Name != "x" ||
		*got.Drop != 0 || *got.Limit != 0 ||
		got.Scale != 3 || got.Level != "high" || got.Samples != 4 || got.Rule != "minmax" || len(got.Skip) != 3 ||
		got.MinSize != 9 {
		t.Errorf("got %+v", got)
	}
	const want = "drop=0 fast=true level=high limit=0 min-size=9 name=x only= order=false ratio=0.25 rule=minmax " +
		"samples=4 scale=3x seed=7 size=16 skip=a,b,c"
	if text := valuesOf(o); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func valuesOf(o pass.Options) string {
	var parts []string
	for _, v := range pass.Values(o) {
		parts = append(parts, v.Name+"="+v.Value)
	}
	return strings.Join(parts, " ")
}

func TestHelpOfOptions(t *testing.T) {
	var got []string
	pass.Flags(kinds).VisitAll(func(f *flag.Flag) {
		placeholder, usage := flag.UnquoteUsage(f)
		got = append(got, fmt.Sprintf("%s|%s|%s|%s|%s", f.Name, placeholder, f.DefValue, usage,
			strings.Join(pass.Words(f), ",")))
	})
	want := []string{
		"drop|value|1.5|zero differs from the default|",
		"fast||false|skip the slow part|",
		"level|value|low|a named string|low,high",
		"limit|value||none by default|",
		"min-size|elements|0|skip tensors with fewer elements|",
		"name|value||text|",
		"only|globs||apply to tensors, nodes and modules that match these globs only (op:MatMul for operators)|",
		"order||true|the weights' order|",
		"ratio|value|0.5|fraction|",
		"rule|rule|mse|rule of ranges|mse,minmax",
		"samples|number|8|number of samples|",
		"scale|value|2x|a flag.Value|",
		"seed|number|0|number that seeds the random generator|",
		"size|size|32|block size of the layers' weights|",
		"skip|globs||skip tensors, nodes and modules that match these globs|",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestInvalidOptions(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"size", "much", "parse error"},
		{"size", "0", `"0" is not supported; omit the option for the default, 32`},
		{"size", "99999999999999999999", "value out of range"},
		{"seed", "-1", "parse error"},
		{"drop", "x", "parse error"},
		{"fast", "maybe", "parse error"},
		{"rule", "best", `"best" is not one of mse, minmax`},
		{"level", "mid", `"mid" is not one of low, high`},
		{"ratio", "2", "--ratio is above 1"},
		{"scale", "x", "invalid syntax"},
		{"skip", "[a", `"[a" is not a valid pattern`},
	} {
		_, err := pass.NewStep(kinds, func(fs *flag.FlagSet) error { return fs.Set(c.name, c.value) })
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "kinds: ") {
			t.Errorf("--%s %s: got %v, want %s", c.name, c.value, err, c.want)
		}
	}
	for _, o := range []pass.Options{everyKind{group: group{Rule: "best"}}, &everyKind{Ratio: 2}, (*everyKind)(nil), nil} {
		if _, err := run(t, product(), pass.Environment{}, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestZeroValuesDoNotPanic(t *testing.T) {
	o, err := pass.NewStep(kinds, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := valuesOf(o); !strings.Contains(text, "size=32") {
		t.Errorf("values in force are %s", text)
	}
	if valuesOf(everyKind{}) != valuesOf(o) {
		t.Error("a struct and a pointer to it have different values")
	}
}

func TestMalformedDeclarationsPanic(t *testing.T) {
	for name, group := range map[string]any{
		"channel": &struct {
			C chan int `flag:"c"`
		}{},
		"boolean with default": &struct {
			B bool `flag:"b" default:"true"`
		}{},
		"negated number": &struct {
			N int `flag:"n,not"`
		}{},
		"unexported": &struct {
			n int `flag:"n"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			pass.Declare(flag.NewFlagSet("", flag.ContinueOnError), group)
		}()
	}
}

// A resolved recipe parses to the same options.
func TestRecipeOfAnOptionStruct(t *testing.T) {
	limit := 0
	text, err := (&pass.Recipe{Steps: []pass.Options{everyKind{NoOrder: true, Limit: &limit, Ratio: 0.25}}}).Text(nil)
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := pass.ParseRecipe([]*pass.Method{kinds}, text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := recipe.Text(nil)
	if err != nil || string(again) != string(text) {
		t.Errorf("got %s, %v, want %s", again, err, text)
	}
	o := recipe.Steps[0].(*everyKind)
	if !o.NoOrder || o.Limit == nil || *o.Limit != 0 || o.Ratio != 0.25 {
		t.Errorf("got %+v", o)
	}
}

// A target sets options without a value of their own.
func TestTargetAppliesToOptionStructs(t *testing.T) {
	target := pass.Target{Name: "here", Choices: []pass.Choice{{Method: "kinds", Option: "size", Value: "64"}}}
	steps := []pass.Options{everyKind{}, everyKind{Size: 16}}
	aimed, err := target.Apply(steps)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := steps[0].(*everyKind).Size, steps[1].(*everyKind).Size; a != 64 || b != 16 {
		t.Errorf("sizes are %d and %d", a, b)
	}
	if !aimed.Overridden() {
		t.Error("the given size is not reported")
	}
}

// The model of a run with no steps is only verified.
func TestRunWithoutSteps(t *testing.T) {
	e := ir.NewEval("")
	defer e.Close()
	if _, err := pass.Run(context.Background(), product(), e, pass.Environment{Workers: 1}, nil); err != nil {
		t.Error(err)
	}
}
