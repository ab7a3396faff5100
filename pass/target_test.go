package pass_test

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

func applyTarget(t *testing.T, want pass.Choice, given ...string) (*pass.Target, pass.Options) {
	t.Helper()
	step, err := pass.NewStep(known()[1], func(fs *flag.FlagSet) error { return fs.Parse(given) })
	if err != nil {
		t.Fatal(err)
	}
	other := pass.Choice{Method: "prune", Option: "amount", Value: "1", Why: "never"}
	applied, err := (&pass.Target{Name: "here", Choices: []pass.Choice{other, want}}).Apply([]pass.Options{step})
	if err != nil {
		t.Fatal(err)
	}
	return applied, step
}

// Options of the caller override the target, also those that exclude its option, and the target reports them.
func TestTargetApply(t *testing.T) {
	want := pass.Choice{Method: "quantize", Option: "amount", Value: "0.25", Why: "reason", Unless: []string{"note"}}
	for _, c := range []struct {
		given  []string
		amount string
		option string
		value  string
		over   bool
	}{
		{nil, "0.25", "amount", "0.25", false},
		{[]string{"-amount=0.25"}, "0.25", "amount", "0.25", false},
		{[]string{"-amount=0.75"}, "0.75", "amount", "0.75", true},
		{[]string{"-note=x"}, "0.5", "note", "x", true},
	} {
		applied, step := applyTarget(t, want, c.given...)
		if len(applied.Choices) != 1 || applied.Overridden() != c.over {
			t.Fatalf("%v: %+v", c.given, applied)
		}
		if got := applied.Choices[0]; got.Option != c.option || got.Value != c.value || got.Given != c.over ||
			got.Why != want.Why {
			t.Errorf("%v: %+v", c.given, got)
		}
		if !slices.Contains(pass.Values(step), pass.Option{Name: "amount", Value: c.amount}) {
			t.Errorf("%v: options are %v", c.given, pass.Values(step))
		}
	}
}

// A second application has the same result.
func TestTargetAppliedTwice(t *testing.T) {
	want := pass.Choice{Method: "quantize", Option: "amount", Value: "0.25", Why: "reason"}
	first, step := applyTarget(t, want)
	second, err := (&pass.Target{Name: "here", Choices: []pass.Choice{want}}).Apply([]pass.Options{step, step})
	if err != nil || len(second.Choices) != 1 || second.Overridden() || second.Choices[0].Value != first.Choices[0].Value {
		t.Errorf("%+v became %+v, %v", first, second, err)
	}
}

func TestTargetWithInvalidValue(t *testing.T) {
	step, err := pass.NewStep(known()[1], func(*flag.FlagSet) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	much := pass.Choice{Method: "quantize", Option: "amount", Value: "much"}
	_, err = (&pass.Target{Name: "here", Choices: []pass.Choice{much}}).Apply([]pass.Options{step})
	if err == nil || !strings.HasPrefix(err.Error(), "target here: quantize: ") {
		t.Error(err)
	}
}

func TestRecipeNamesATarget(t *testing.T) {
	recipe, err := pass.ParseRecipe(known(), []byte("target: there\nsteps:\n  - method: prune\n"))
	if err != nil || recipe.Target != "there" || len(recipe.Steps) != 1 {
		t.Errorf("%v, %v", recipe, err)
	}
}

// A model is refused whose opset or IR version a runtime of the target does not load.
func TestTargetVersions(t *testing.T) {
	for _, c := range []struct {
		target    string
		opset, ir int64
		ok        bool
	}{
		{"ort-1.17", 24, 9, false}, {"ort-1.17", 20, 10, false}, {"ort-1.17", 20, 9, true}, {"ort,ort-1.20", 22, 10, false},
		{"ort", 24, 12, true}, {"cpu", 24, 12, true},
	} {
		target, err := pass.ParseTarget(c.target, []pass.Target{{Name: "cpu", CPU: "any"}})
		if err != nil {
			t.Fatal(err)
		}
		m := ir.NewModel()
		m.IRVersion, m.Opsets = c.ir, []ir.Opset{{Version: c.opset}}
		_, err = pass.Run(t.Context(), m, ir.NewEval(t.TempDir()), pass.Environment{Target: target}, nil)
		var refused *pass.OptionError
		if errors.As(err, &refused) == c.ok {
			t.Errorf("%s, opset %d, IR version %d: %v", c.target, c.opset, c.ir, err)
		}
	}
}

// The IR version of a changed model is lowered to that of the target where nothing in the model needs it.
// Every capability of a runtime is listed once, with a description.
func TestCapabilitiesOfRuntimes(t *testing.T) {
	var listed, used pass.Capability
	texts := map[string]bool{}
	for _, c := range pass.Capabilities() {
		if listed&c != 0 || c.String() == "" || texts[c.String()] {
			t.Errorf("capability %b, %q", c, c)
		}
		listed |= c
		texts[c.String()] = true
	}
	for _, r := range pass.Runtimes {
		used |= r.Can
	}
	if listed != used {
		t.Errorf("capabilities %b are listed, runtimes have %b", listed, used)
	}
}

func TestIRVersionOfTheTarget(t *testing.T) {
	for _, c := range []struct {
		name, target string
		opset        int64
		dtype        ir.DType // of another constant
		function     bool
		keep         bool
		was, want    int64 // 0: refused
	}{
		{"lowered", "ort-1.17", 20, ir.Float, false, false, 10, 9},
		{"to the oldest runtime", "ort,ort-1.17", 13, ir.Float, false, false, 13, 9},
		{"low enough", "ort-1.17", 13, ir.Float, false, false, 8, 8},
		{"of a CPU only", "cpu", 13, ir.Float, false, false, 13, 13},
		{"needed by a type", "ort-1.17", 20, ir.Uint4, false, false, 10, 0},
		{"needed by an opset", "ort-1.17", 21, ir.Float, false, false, 10, 0},
		{"needed by the overload of a function", "ort-1.17", 20, ir.Float, true, false, 10, 0},
		{"kept", "ort-1.17", 20, ir.Float, false, true, 10, 0},
	} {
		target, err := pass.ParseTarget(c.target, []pass.Target{{Name: "cpu", CPU: "any"}})
		if err != nil {
			t.Fatal(err)
		}
		m := product(floats([]int64{1, 1}, 1), floats([]int64{1, 1}, 2))
		m.IRVersion, m.Opsets = c.was, []ir.Opset{{Version: c.opset}}
		spec := ir.Spec{DType: c.dtype, Shape: []int64{2}}
		m.Graph.AddConst("other", &ir.Tensor{Spec: spec, Source: ir.Mem(make([]byte, spec.Bytes()))})
		if c.function {
			f := m.AddFunction(ir.OpID{Domain: "d", Type: "F", Overload: "o"})
			f.Opsets = m.Opsets
		}
		res, err := run(t, m, pass.Environment{Target: target, KeepIR: c.keep}, step(t, "keep", pass.Prune, keep))
		var refused *pass.OptionError
		if c.want == 0 && !errors.As(err, &refused) || c.want > 0 && (err != nil || m.IRVersion != c.want) {
			t.Errorf("%s: IR version %d, want %d: %v", c.name, m.IRVersion, c.want, err)
			continue
		}
		lowered := res != nil && slices.ContainsFunc(res.Rows, func(r pass.Row) bool {
			return r.Reason.Code == pass.IRLowered
		})
		if lowered != (c.want > 0 && c.want < c.was) {
			t.Errorf("%s: noted %v", c.name, lowered)
		}
	}
}
