package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// outline is the rows of a tree as text.
func (b *branch) outline(indent string) []string {
	var lines []string
	for _, c := range b.Children {
		lines = append(lines, fmt.Sprintf("%s%s %d>%d %s", indent, c.Name, c.Bytes.Before, c.Bytes.After, sqnr(c.Error)))
		lines = append(lines, c.outline(indent+" ")...)
		if c.Omitted != "" {
			lines = append(lines, indent+" … "+c.Omitted)
		}
	}
	return lines
}

func inModule(module, name string, bytes int64, db float64) Weight {
	return Weight{Tensor: name, Module: module, Bytes: Change{4 * bytes, bytes},
		Figures: Figures{Error: &Error{SQNR: &db}}}
}

func TestTreeGroupsWeightsByModule(t *testing.T) {
	ws := []Weight{
		inModule("enc.0.query", "enc.0.query.weight", 10, 30),
		inModule("enc.0.query", "enc.0.query.bias", 1, 50),
		inModule("enc.0.key", "onnx::MatMul_7", 10, 20),
		inModule("enc.1.query", "enc.1.query.weight", 10, 40),
		inModule("", "loose", 2, 60),
	}
	ws = append(ws, Weight{Tensor: "w", Scope: "body", Module: "enc.0", Bytes: Change{8, 8}})
	want := []string{
		"enc 124>31 20.0 dB",
		" 0 84>21 20.0 dB",
		"  query 44>11 30.0 dB",
		"   weight 40>10 30.0 dB",
		"   bias 4>1 50.0 dB",
		"  key (onnx::MatMul_7) 40>10 20.0 dB",
		" 1.query.weight 40>10 40.0 dB",
		"loose 8>2 60.0 dB",
		"body.enc.0 (w) 8>8 ",
	}
	if got := tree(ws).outline(""); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The rows of the tree sum up to all weights, whatever their number and names.
func TestTreeIsBounded(t *testing.T) {
	for name, module := range map[string]func(i int) string{
		"flat":  func(int) string { return "" },
		"wide":  func(i int) string { return fmt.Sprint("m", i) },
		"deep":  func(i int) string { return strings.Repeat("m.", i) },
		"twins": func(i int) string { return fmt.Sprintf("a.%d.%d", i%60, i%3) },
	} {
		var ws []Weight
		total := Change{}
		for i := range 3000 {
			w := inModule(module(i), fmt.Sprint("w", i), int64(i+1), float64(i))
			ws, total = append(ws, w), Change{total.Before + w.Bytes.Before, total.After + w.Bytes.After}
		}
		root := tree(ws)
		if n := len(root.outline("")); n > 2*maxRows {
			t.Errorf("%s: %d rows", name, n)
		}
		var sum Change
		for _, c := range root.Children {
			sum.Before, sum.After = sum.Before+c.Bytes.Before, sum.After+c.Bytes.After
		}
		if sum != total || root.Bytes != total {
			t.Errorf("%s: the rows have %v and the root %v bytes, want %v", name, sum, root.Bytes, total)
		}
		if lowest := sqnr(root.Error); lowest != "0.0 dB" {
			t.Errorf("%s: the lowest SQNR is %s", name, lowest)
		}
		if len(root.Children) > maxChildren {
			t.Errorf("%s: %d children", name, len(root.Children))
		}
	}
}

// Few rows are open at first, and all of a small tree.
func TestTreeOpensFewRows(t *testing.T) {
	small := tree([]Weight{inModule("a", "a.x", 1, 1), inModule("a", "a.y", 1, 1)})
	if !small.Children[0].Open {
		t.Error("a small tree is closed")
	}
	var ws []Weight
	for i := range 100 {
		ws = append(ws, inModule(fmt.Sprintf("m.%d.n", i%10), fmt.Sprint("w", i), 1, 1))
	}
	m := tree(ws).Children[0]
	if !m.Open || m.Children[0].Open {
		t.Errorf("open are the model %v and its layers %v, want true and false", m.Open, m.Children[0].Open)
	}
}
