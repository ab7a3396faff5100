package quantize

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Every choice of every target is a valid value of the method's option, and has a reason.
func TestTargetsChooseValidOptions(t *testing.T) {
	methods := []*pass.Method{DynamicInt8{}.Method(), StaticInt8{}.Method(), WeightInt8{}.Method(), WeightInt4{}.Method(),
		WeightInt2{}.Method()}
	for _, target := range CPUs {
		var steps []pass.Options
		for _, m := range methods {
			steps = append(steps, variant{method: m}.step(t))
		}
		aimed, err := target.Apply(steps)
		if err != nil {
			t.Fatal(err)
		}
		if len(aimed.Choices) != len(target.Choices) || aimed.Overridden() {
			t.Errorf("%s: of %d choices %d came out: %+v", target.Name, len(target.Choices), len(aimed.Choices), aimed)
		}
		for _, c := range aimed.Choices {
			if c.Why == "" {
				t.Errorf("%s: %s has no reason", target.Name, c.Option)
			}
		}
	}
}

// Weights of products and convolutions have the type that the target's kernels add exactly, and outputs are valid and
// run.
func TestTargetsDecideTypes(t *testing.T) {
	w := conform.Start(t)
	for _, target := range CPUs {
		weights := map[string]ir.DType{"cpu-avx2": ir.Uint8, "cpu-vnni": ir.Int8, "arm64": ir.Int8,
			"any": ir.Uint8}[target.Name]
		activations := map[string]ir.DType{"cpu-avx2": ir.Uint8, "cpu-vnni": ir.Uint8, "arm64": ir.Int8,
			"any": ir.Uint8}[target.Name]
		for _, method := range []*pass.Method{DynamicInt8{}.Method(), StaticInt8{}.Method()} {
			var options []string
			step := variant{method: method}.step(t)
			if _, err := target.Apply([]pass.Options{step}); err != nil {
				t.Fatal(err)
			}
			for _, o := range pass.Values(step) {
				if flag := pass.Flags(method).Lookup(o.Name); flag.Value.String() != o.Value {
					options = append(options, o.Name+"="+o.Value)
				}
			}
			v := variant{method, options}
			for _, name := range []string{"mlp", "cnn"} {
				out := filepath.Join(t.TempDir(), "out.onnx")
				v.apply(t, fixture(name), out)
				for n := range opened(t, out).Model.Nodes() {
					checkTypes(t, target.Name+" "+v.String()+" "+name, n, weights, activations)
				}
				if err := w.Check(out, true); err != nil {
					t.Error(err)
				}
				if _, err := w.Run(out, conform.Options{}); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func checkTypes(t *testing.T, what string, n *ir.Node, weights, activations ir.DType) {
	t.Helper()
	switch c := n.Input(1); {
	case n.Op.Is("MatMulInteger") && c.Const != nil && c.Const.DType != weights:
		t.Errorf("%s: %s has weights of %s, want %s", what, n.Label(), c.Const.DType, weights)
	case n.Op.Is("DequantizeLinear") && n.Input(0).Const != nil && len(n.Input(0).Const.Shape) > 1 &&
		n.Input(0).Const.DType != weights:
		t.Errorf("%s: %s has weights of %s, want %s", what, n.Label(), n.Input(0).Const.DType, weights)
	case n.Op.Is("QuantizeLinear") && n.Input(2) != nil && n.Input(2).Const != nil &&
		n.Input(2).Const.DType != activations:
		t.Errorf("%s: %s makes %s, want %s", what, n.Label(), n.Input(2).Const.DType, activations)
	}
}

// The form that a target chooses does not count as the caller's: the accuracy level follows it.
func TestGenaiChoosesFormAndAccuracyLevel(t *testing.T) {
	target, err := pass.ParseTarget("genai", CPUs)
	if err != nil {
		t.Fatal(err)
	}
	steps := []pass.Options{variant{method: WeightInt4{}.Method()}.step(t)}
	if _, err := target.Apply(steps); err != nil {
		t.Fatal(err)
	}
	for _, o := range pass.Values(steps[0]) {
		if want, ok := map[string]string{"form": "matmulnbits", "accuracy-level": "4"}[o.Name]; ok && o.Value != want {
			t.Errorf("--%s %s, want %s", o.Name, o.Value, want)
		}
	}
}
