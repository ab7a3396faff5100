package ir

import (
	"fmt"
	"strings"
	"testing"
)

// functionsOf returns a model of functions that call others: "f:g,g" is a function f with two calls of g. The main
// graph calls the first.
func functionsOf(specs ...string) *Model {
	m := NewModel()
	for i, s := range specs {
		name, called, _ := strings.Cut(s, ":")
		f := m.AddFunction(OpID{Domain: "local", Type: name})
		for _, c := range strings.FieldsFunc(called, func(r rune) bool { return r == ',' }) {
			f.Body.Append(f.Body.NewNode(OpID{Domain: "local", Type: c}, nil))
		}
		if i == 0 {
			m.Graph.Append(m.Graph.NewNode(f.ID, nil))
		}
	}
	return m
}

// chainOf returns n functions, each of which calls the next that often.
func chainOf(n, calls int) []string {
	specs := make([]string, n)
	for i := range specs {
		specs[i] = fmt.Sprintf("f%d:", i) + strings.Repeat(fmt.Sprintf("f%d,", i+1), calls)
	}
	return specs
}

func TestVerifyCalls(t *testing.T) {
	for _, tt := range []struct {
		name  string
		specs []string
		want  string
	}{
		{"calls without a cycle", []string{"f:g,h", "g:h", "h:Relu"}, ""},
		{"a function that calls itself", []string{"f:f"}, `function "local.f" calls itself: "local.f" → "local.f"`},
		{"functions that call each other", []string{"e:f", "f:g", "g:h", "h:f"},
			`function "local.f" calls itself: "local.f" → "local.g" → "local.h" → "local.f"`},
		{"a cycle without a call from outside", []string{"e", "f:f"},
			`function "local.f" calls itself: "local.f" → "local.f"`},
		{"as deep as allowed", chainOf(64, 1), ""},
		{"too deep", chainOf(65, 1), `function "local.f0": calls are nested deeper than 64 levels`},
		{"much too deep", chainOf(100_000, 1), `function "local.f0": calls are nested deeper than 64 levels`},
		{"a million nodes", chainOf(20, 2), ""},
		{"a billion nodes", chainOf(30, 2), "function calls expand to more than 4194304 nodes and edges"},
		{"more nodes than 64 bits count", chainOf(60, 1000), "function calls expand to more than 4194304 nodes and edges"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := functionsOf(tt.specs...).VerifyCalls(); err != nil {
				got = err.Error()
			}
			if !strings.HasSuffix(got, tt.want) || got != "" && tt.want == "" {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The main graph counts like a function, but not the nodes that the file has.
func TestExpansionOfTheMainGraph(t *testing.T) {
	m := functionsOf(chainOf(20, 2)...)
	for range 4 {
		m.Graph.Append(m.Graph.NewNode(OpID{Domain: "local", Type: "f0"}, nil))
	}
	if err := m.VerifyCalls(); err == nil {
		t.Error("no error for 4 · 2^20 nodes")
	}
}

// A function in a subgraph of its own body calls itself, and copies in a subgraph count.
func TestCallsInSubgraphs(t *testing.T) {
	m := functionsOf("f")
	owner := m.Functions[0].Body.NewNode(OpID{Type: "If"}, nil)
	m.Functions[0].Body.Append(owner)
	branch := NewSubgraph(m.Functions[0].Body, owner)
	owner.Attrs = []*Attr{{Name: "then_branch", Type: AttrGraph, Graph: branch}}
	branch.Append(branch.NewNode(m.Functions[0].ID, nil))
	if err := m.VerifyCalls(); err == nil || !strings.Contains(err.Error(), "calls itself") {
		t.Errorf("got %v", err)
	}
}

// Names of copies start with that of the call: a long one costs memory for each node.
func TestExpansionCountsNames(t *testing.T) {
	m := functionsOf(chainOf(12, 2)...)
	if err := m.VerifyCalls(); err != nil {
		t.Fatal(err)
	}
	m.Graph.First().Name = strings.Repeat("n", 1<<20)
	if err := m.VerifyCalls(); err == nil {
		t.Error("no error for 2^12 names of 1 MiB")
	}
}

func TestCalleeFollowsTheListOfFunctions(t *testing.T) {
	m := functionsOf("f")
	call := m.Graph.First()
	if call.Callee() != m.Functions[0] {
		t.Fatal("the function is not found")
	}
	m.Functions = nil
	if call.Callee() != nil {
		t.Error("a removed function is found")
	}
	relu := m.AddFunction(OpID{Domain: "ai.onnx", Type: "Relu"})
	n := m.Graph.NewNode(OpID{Type: "Relu"}, nil)
	if n.Callee() != relu {
		t.Error("a function of the default domain is not found by its other name")
	}
}
