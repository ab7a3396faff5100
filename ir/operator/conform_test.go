package operator_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir/operator"
)

// unspecified are operators of the table that are in no specification, with the reason.
var unspecified = map[string]string{
	"com.microsoft.SimplifiedLayerNormalization": "exporters write it in this domain; ONNX Runtime specifies it in ai.onnx",
	"mcompress.BatchNormTrain":                   "the engine's own",
	"mcompress.BatchNormPoolTrain":               "the engine's own",
}

func specification(t *testing.T) map[string]conform.Operator {
	t.Helper()
	all, err := conform.Start(t).Operators()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTableFollowsTheSpecification(t *testing.T) {
	all := specification(t)
	for _, name := range operator.Names() {
		o, ok := all[name]
		if !ok {
			if unspecified[name] == "" {
				t.Errorf("%s is in no specification", name)
			}
			continue
		}
		f := operator.Lookup(operator.Parse(name))
		for _, in := range f.Inputs {
			if most := slices.Max(append([]int{in.Index}, in.Params...)); most >= o.Inputs {
				t.Errorf("%s has at most %d inputs, no input %d", name, o.Inputs, most)
			}
		}
		for _, x := range f.Indexing {
			if max(x.Indices, x.Table) >= o.Inputs {
				t.Errorf("%s has at most %d inputs: %+v", name, o.Inputs, x)
			}
		}
		if f.Attention && o.Inputs < 3 || f.Commutative && o.Inputs < 2 {
			t.Errorf("%s has at most %d inputs", name, o.Inputs)
		}
		if f.ElemAttr != "" && !slices.Contains(o.Attributes, f.ElemAttr) {
			t.Errorf("%s has attributes %q, no %s", name, o.Attributes, f.ElemAttr)
		}
		if f.Reduction && !slices.Contains(o.Attributes, "keepdims") {
			t.Errorf("%s has attributes %q, no keepdims", name, o.Attributes)
		}
		if body := slices.Contains(o.Attributes, "body") ||
			slices.Contains(o.Attributes, "then_branch"); body != f.ControlFlow && name != "SequenceMap" {
			t.Errorf("%s: control flow %v, attributes %q", name, f.ControlFlow, o.Attributes)
		}
		if f.FlattensBefore > 0 && !slices.Contains(o.Since, f.FlattensBefore) {
			t.Errorf("%s has versions %v, no %d", name, o.Since, f.FlattensBefore)
		}
	}
}

// notVariadic are operators with a variadic first input of another meaning.
var notVariadic = []string{"Einsum", "Scan", "SequenceConstruct"}

func TestColumnsAreCompleteForONNX(t *testing.T) {
	for name, o := range specification(t) {
		if strings.Contains(name, ".") {
			continue
		}
		f := operator.Lookup(operator.Parse(name))
		if seeded := slices.Contains(o.Attributes, "seed"); seeded != f.Random {
			t.Errorf("%s: random %v, but an attribute seed %v", name, f.Random, seeded)
		}
		if variadic := o.Variadic && !slices.Contains(notVariadic, name); variadic != f.Variadic {
			t.Errorf("%s: variadic %v, specified as %v", name, f.Variadic, variadic)
		}
		if reduces := strings.HasPrefix(name, "Reduce"); reduces != f.Reduction {
			t.Errorf("%s: reduction %v", name, f.Reduction)
		}
	}
}

func TestOperatorsAreInAColumnOnce(t *testing.T) {
	for column, names := range operator.Columns() {
		slices.Sort(names)
		if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
			t.Errorf("%s has an operator twice: %q", column, names)
		}
	}
}
