package grad

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	models "github.com/mcompress/mcompress/onnx"
)

// storedByTable reports whether v, a value of the forward graph, or a view of it is stored for the backward pass
// according to the table of operators. It is unknown if the table does not have all operators that use v.
func storedByTable(t *Tape, v *ir.Value, forward map[*ir.Node]bool) (stored, known bool) {
	if p := v.Producer(); p != nil {
		s := savesOf(p)
		if s == 0 {
			return false, false
		}
		stored = hasBackward(t, p) && s.StoresOutput(p, t.Needs)
	}
	for _, u := range v.Uses() {
		if u.Node == nil || !forward[u.Node] || is(u.Node, own, "ActivationMask") {
			continue
		}
		s := savesOf(u.Node)
		if s == 0 {
			return false, false
		}
		stored = stored || hasBackward(t, u.Node) && s.StoresInput(u.Node, u.Index, t.DType(v).IsFloat(), t.Needs)
		if isView(u.Node) && u.Index == 0 {
			viewed, known := storedByTable(t, u.Node.Outputs[0], forward)
			if !known {
				return false, false
			}
			stored = stored || viewed
		}
	}
	return stored, true
}

// savesOf is the entry of n's operator in the table, which does not cover negative slopes.
func savesOf(n *ir.Node) operator.Saves {
	if n.Op.Is("LeakyRelu") && n.Float("alpha", 0) < 0 {
		return 0
	}
	return operator.Of(n).Saves
}

func hasBackward(t *Tape, n *ir.Node) bool {
	return slices.ContainsFunc(n.Outputs, func(v *ir.Value) bool { return v != nil && t.Grad(v) != nil })
}

// compareStored compares the values that the backward pass uses with the table of operators, and returns the number of
// compared values.
func compareStored(t *testing.T, tape *Tape) int {
	t.Helper()
	compared, forward := 0, tape.Activations().forwardSet()
	for _, v := range forwardResults(tape) {
		if isView(v.Producer()) {
			continue
		}
		want, known := storedByTable(tape, v, forward)
		if !known {
			continue
		}
		compared++
		masked := slices.ContainsFunc(v.Uses(), func(u ir.Use) bool { return is(u.Node, own, "ActivationMask") })
		if got := masked || len(usesOutside(v, forward)) > 0; got != want {
			t.Errorf("%s: stored is %v, want %v", describe(v), got, want)
		}
	}
	return compared
}

// forwardResults returns the first results of the nodes of the forward graph, and inputs with a gradient that are not
// parameters of operators.
func forwardResults(tape *Tape) []*ir.Value {
	var vs []*ir.Value
	for _, v := range tape.Graph().Inputs {
		if tape.Grad(v) != nil && !slices.ContainsFunc(v.Uses(), isParameter) {
			vs = append(vs, v)
		}
	}
	for _, n := range tape.forward {
		vs = append(vs, n.Outputs[0])
	}
	return vs
}

// isParameter reports whether u is a weight or a setting of a node.
func isParameter(u ir.Use) bool {
	return u.Node != nil && operator.Of(u.Node).Input(u.Index).Role != operator.Activation
}

// describe names v by its producer and its uses.
func describe(v *ir.Value) string {
	text := "input"
	if p := v.Producer(); p != nil {
		text = p.Op.Type
	}
	text += " →"
	for _, u := range v.Uses() {
		if u.Node != nil {
			text += fmt.Sprintf(" %s.%d", u.Node.Op.Type, u.Index)
		}
	}
	return text
}

// trainingGraph returns the training graph of the model at path with a gradient of each output; nil if it cannot be
// trained.
func trainingGraph(t *testing.T, path string) *Tape {
	t.Helper()
	f, err := models.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inputs, err := dataset.Specs(dataset.Inputs(f.Model.Graph), dataset.Random{Samples: 1})
	if err != nil {
		return nil
	}
	specs := map[string]ir.Spec{}
	for _, s := range inputs {
		specs[s.Name] = s
	}
	tape, err := New(t.Context(), f.Model, Options{Inputs: specs})
	if err != nil {
		return nil
	}
	seeds := map[*ir.Value]*ir.Value{}
	for _, y := range tape.Graph().Outputs {
		if tape.Needs(y) {
			seeds[y] = tape.Input("seed", tape.DType(y), tape.Shape(y)...)
		}
	}
	if tape.Backward(seeds) != nil {
		return nil
	}
	return tape
}

// The backward pass of a model uses the tensors that the table of operators lists as saved.
func TestModelsSaveTheTensorsOfTheTable(t *testing.T) {
	compared := 0
	for _, path := range append(conform.Fixtures(t), conform.RealModels(t)...) {
		if tape := trainingGraph(t, path); tape != nil {
			t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path),
				func(t *testing.T) { compared += compareStored(t, tape) })
		}
	}
	if compared < 2000 {
		t.Errorf("%d values were compared", compared)
	}
}
