package ir

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// unsorted appends nodes named after what they make, each reading the values named
// after the colon, in this order: "a:b,c" is a node that makes a from b and c.
func unsorted(g *Graph, specs ...string) {
	made := map[string]*Value{}
	value := func(name string) *Value {
		if made[name] == nil {
			made[name] = g.AddValue(name)
		}
		return made[name]
	}
	for _, s := range specs {
		out, in, _ := strings.Cut(s, ":")
		var vs []*Value
		if in != "" {
			for _, name := range strings.Split(in, ",") {
				vs = append(vs, value(name))
			}
		}
		n := g.NewNode(OpID{Type: out}, vs)
		n.SetOutputs(value(out))
		g.Append(n)
	}
}

func TestLive(t *testing.T) {
	for _, tt := range []struct{ name, nodes, outputs, want string }{
		{"a branch that nothing reads", "c:b b:a a d:b", "c", "a b c"},
		{"a chain that nothing reads", "a b:a c:b d:a", "d", "a d"},
		{"an output that another node reads", "a b:a", "a", "a"},
		{"no outputs", "a b:a", "", ""},
	} {
		g := NewModel().Graph
		unsorted(g, strings.Fields(tt.nodes)...)
		for n := range g.Nodes() {
			if strings.Contains(tt.outputs, n.Op.Type) {
				g.AddOutput(n.Outputs[0])
			}
		}
		live, err := g.Live()
		var got []string
		for _, n := range live {
			got = append(got, n.Op.Type)
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %q, want %q, %v", tt.name, got, tt.want, err)
		}
	}
}

// What a subgraph reads from around it is live with the node that has it.
func TestLiveBySubgraph(t *testing.T) {
	g := NewModel().Graph
	unsorted(g, "a", "b")
	a, b := g.First(), g.Last()
	n := g.NewNode(OpID{Type: "If"}, nil)
	sub := NewSubgraph(g, n)
	sub.AddOutput(sub.Insert(nil, "Relu", []*Value{a.Outputs[0]}))
	n.SetAttr(&Attr{Name: "then_branch", Type: AttrGraph, Graph: sub})
	n.SetOutputs(g.NewValue("y"))
	g.Append(n)
	g.AddOutput(n.Outputs[0])
	if live, err := g.Live(); err != nil || !slices.Equal(live, []*Node{a, n}) || slices.Contains(live, b) {
		t.Errorf("got %d nodes, %v; want a and If", len(live), err)
	}
}

func TestSort(t *testing.T) {
	for _, tt := range []struct{ name, nodes, want string }{
		{"sorted already", "a b:a c:a d:b,c", "a b c d"},
		{"independent nodes keep their order", "c a b", "c a b"},
		{"backwards", "c:b b:a a", "a b c"},
		{"one node out of order", "a d:c b:a c:b e", "a b c d e"},
		{"read twice", "b:a,a a", "a b"},
		{"a diamond", "d:b,c c:a b:a a", "a b c d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewModel().Graph
			unsorted(g, strings.Fields(tt.nodes)...)
			if err := g.Sort(); err != nil {
				t.Fatal(err)
			}
			if got := ops(g); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if !g.Sorted {
				t.Error("the graph does not say that it is sorted")
			}
		})
	}
}

func TestSortFindsCycles(t *testing.T) {
	for _, nodes := range []string{"a:a", "a:b b:a", "x a:c,x b:a c:b", "a:b b:c c:b"} {
		g := NewModel().Graph
		unsorted(g, strings.Fields(nodes)...)
		before := ops(g)
		if err := g.Sort(); !errors.Is(err, ErrCycle) {
			t.Errorf("%q: got %v", nodes, err)
		}
		if ops(g) != before {
			t.Errorf("%q: a Sort that failed changed the order", nodes)
		}
	}
}

func TestCyclesAreNamed(t *testing.T) {
	long := ""
	for i := range 20 {
		long += fmt.Sprintf("n%d:n%d ", i, (i+19)%20)
	}
	for nodes, want := range map[string]string{
		"x a:a":                 `"a(a)" → "a(a)"`,
		"a:b b:c,x c:a x":       `"a(a)" → "c(c)" → "b(b)" → "a(a)"`,
		"d:a,b a:c b:a c:d":     `"d(d)" → "c(c)" → "a(a)" → "d(d)"`,
		"e:a a:b,c b c:b,d d:a": `"a(a)" → "d(d)" → "c(c)" → "a(a)"`,
		long:                    `"n0(n0)" → "n1(n1)" → "n2(n2)" → "n3(n3)" → "n4(n4)" → "n5(n5)" → "n6(n6)" → "n7(n7)" → 12 more → "n0(n0)"`,
	} {
		g := NewModel().Graph
		unsorted(g, strings.Fields(nodes)...)
		_, err := g.Order()
		if got := fmt.Sprint(err); got != "its nodes form a cycle: "+want {
			t.Errorf("%s: got %s, want %s", nodes, got, want)
		}
	}
}

// A node comes after what its subgraphs read, however deep they lie.
func TestSortCoversSubgraphs(t *testing.T) {
	m := NewModel()
	g := m.Graph
	late := g.AddValue("late")
	owner := g.NewNode(OpID{Type: "If"}, nil)
	sub := NewSubgraph(g, owner)
	owner.SetAttr(&Attr{Name: "then_branch", Type: AttrGraph, Graph: sub})
	innerOwner := sub.NewNode(OpID{Type: "Loop"}, nil)
	deep := NewSubgraph(sub, innerOwner)
	innerOwner.SetAttr(&Attr{Name: "body", Type: AttrGraph, Graph: deep})
	unsorted(deep, "q:p", "p")
	deep.AddOutput(late)
	sub.Append(innerOwner)
	g.Append(owner)
	n := g.NewNode(OpID{Type: "Late"}, nil)
	n.SetOutputs(late)
	g.Append(n)
	if err := g.Sort(); err != nil {
		t.Fatal(err)
	}
	if got := ops(g); got != "Late If" {
		t.Errorf("main graph %q", got)
	}
	if got := ops(deep); got != "p q" {
		t.Errorf("innermost graph %q", got)
	}
}

func TestSortFindsACycleThroughASubgraph(t *testing.T) {
	g := NewModel().Graph
	owner := g.NewNode(OpID{Type: "If"}, nil)
	out := g.AddValue("out")
	owner.SetOutputs(out)
	sub := NewSubgraph(g, owner)
	owner.SetAttr(&Attr{Name: "then_branch", Type: AttrGraph, Graph: sub})
	sub.AddOutput(out)
	g.Append(owner)
	if err := g.Sort(); !errors.Is(err, ErrCycle) {
		t.Errorf("got %v", err)
	}
}

// Long chains, forwards and backwards, need no deep stack.
func TestSortOfALongChain(t *testing.T) {
	const n = 100_000
	g := NewModel().Graph
	vs := make([]*Value, n+1)
	for i := range vs {
		vs[i] = g.AddValue("")
	}
	for i := n - 1; i >= 0; i-- {
		node := g.NewNode(OpID{Type: "Relu"}, []*Value{vs[i]})
		node.SetOutputs(vs[i+1])
		g.Append(node)
	}
	if err := g.Sort(); err != nil {
		t.Fatal(err)
	}
	at := 0
	for node := range g.Nodes() {
		if node.Input(0) != vs[at] {
			t.Fatalf("node %d is out of order", at)
		}
		at++
	}
}

// A shuffled graph is put in order, and one in order stays as it is.
func TestSortOfRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewModel().Graph
		var vs []*Value
		var nodes []*Node
		for range rapid.IntRange(1, 12).Draw(t, "nodes") {
			var in []*Value
			if len(vs) > 0 {
				in = rapid.SliceOfN(rapid.SampledFrom(vs), 0, 3).Draw(t, "inputs")
			}
			n := g.NewNode(OpID{Type: "Op"}, in)
			v := g.AddValue("")
			n.SetOutputs(v)
			vs, nodes = append(vs, v), append(nodes, n)
		}
		for _, n := range rapid.Permutation(nodes).Draw(t, "order") {
			g.Append(n)
		}
		if err := g.Sort(); err != nil {
			t.Fatal(err)
		}
		first := slices.Collect(g.Nodes())
		inOrder(t, first)
		if err := g.Sort(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(slices.Collect(g.Nodes()), first) {
			t.Fatal("a sorted graph changed its order")
		}
	})
}

func inOrder(t *rapid.T, nodes []*Node) {
	seen := map[*Node]bool{}
	for _, n := range nodes {
		for _, v := range n.Inputs() {
			if !seen[v.Producer()] {
				t.Fatal("a node precedes the producer of its input")
			}
		}
		seen[n] = true
	}
}
