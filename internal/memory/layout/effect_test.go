package layout

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A builder builds a graph from names.
type builder struct {
	Graph
	index map[string]int
}

func (b *builder) value(name string) int {
	if v, ok := b.index[name]; ok {
		return v
	}
	if b.index == nil {
		b.index = map[string]int{}
	}
	b.index[name] = len(b.Values)
	b.Values = append(b.Values, Value{Name: name, Bytes: 100})
	return b.index[name]
}

// graph parses lines of the form "role: inputs -> outputs" or "name = bytes [same] [output]".
func graph(text string) *Graph {
	b := &builder{}
	names := map[string]Role{"breaking": Breaking, "sensitive": Sensitive, "agnostic": Agnostic, "to-last": ToLast,
		"to-first": ToFirst}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if f[1] == "=" {
			v := &b.Values[b.value(f[0])]
			fmt.Sscan(f[2], &v.Bytes)
			v.Same, v.Output = slices.Contains(f, "same"), slices.Contains(f, "output")
			continue
		}
		n := Node{Name: f[0], Role: names[strings.TrimSuffix(f[0], ":")]}
		list := &n.Inputs
		for _, name := range f[1:] {
			if name == "->" {
				list = &n.Outputs
				continue
			}
			*list = append(*list, b.value(name))
		}
		b.Nodes = append(b.Nodes, n)
	}
	return &b.Graph
}

func TestTransposes(t *testing.T) {
	for _, c := range []struct {
		name, graph           string
		added, kept, vanished string
	}{
		{"at both ends of a region", `
			sensitive: x -> a
			agnostic: a -> b
			sensitive: b -> c
			breaking: c -> y
			x = 60
			c = 20`, "x c", "", ""},
		{"none without sensitive operators", `
			agnostic: x -> a
			breaking: a -> b
			agnostic: b -> y
			y = 100 output`, "", "", ""},
		{"one for several consumers", `
			sensitive: x -> a
			breaking: a -> b
			breaking: a -> c
			agnostic: a -> y
			y = 100 output`, "x a", "", ""},
		{"at the smallest value", `
			sensitive: x -> a
			agnostic: a -> b
			agnostic: b -> c
			breaking: c -> y
			a = 40
			b = 10
			c = 30`, "x b", "", ""},
		{"fewest for equal bytes", `
			sensitive: x -> a
			sensitive: x -> b
			agnostic: a b -> c
			breaking: c -> y
			a = 50
			b = 50
			c = 100`, "x c", "", ""},
		{"none for one pixel", `
			sensitive: x -> a
			sensitive: a -> b
			breaking: b -> y
			b = 4 same`, "x", "", ""},
		{"output of the graph", `
			sensitive: x -> y
			y = 70 output`, "x y", "", ""},
		{"unread output", `sensitive: x -> y`, "x", "", ""},
		{"model exported from a channels-last framework", `
			to-first: x -> a
			sensitive: a -> b
			to-last: b -> c
			agnostic: c -> d
			to-first: d -> e
			sensitive: e -> f
			to-last: f -> y
			y = 100 output`, "", "", "x b d f"},
		{"channels last read by a breaking node", `
			sensitive: x -> a
			to-last: a -> b
			breaking: b -> y`, "x", "", "a"},
		{"both layouts read", `
			sensitive: x -> a
			to-last: a -> b
			breaking: a -> c
			breaking: b -> d`, "x", "a", ""},
		{"duplicate transposes", `
			sensitive: x -> a
			to-last: a -> b
			to-last: a -> c
			breaking: a b c -> d`, "x", "a", "a"},
		{"inverse transposes", `
			sensitive: x -> a
			to-last: a -> b
			to-first: b -> c
			sensitive: c -> d
			breaking: d -> y`, "x d", "", "a a"},
		{"a transpose without images", `
			breaking: x -> a
			to-last: a -> b
			breaking: b -> y`, "", "a", ""},
		{"a transpose to a contradicting layout", `
			sensitive: x -> a
			to-last: a -> b
			sensitive: b -> c
			breaking: c -> y`, "x a b c", "", ""},
		{"contradicting layouts", `
			sensitive: x -> a
			to-last: a -> b
			agnostic: a b -> c
			breaking: c -> y`, "x", "a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := ChannelsLast(graph(c.graph))
			if err != nil {
				t.Fatal(err)
			}
			if got := names(e.Added); got != c.added {
				t.Errorf("added %q, want %q", got, c.added)
			}
			if got := names(e.Kept); got != c.kept {
				t.Errorf("kept %q, want %q", got, c.kept)
			}
			if got := names(e.Vanished); got != c.vanished {
				t.Errorf("vanished %q, want %q", got, c.vanished)
			}
		})
	}
}

func names(ms []Move) string {
	var s []string
	for _, m := range ms {
		s = append(s, m.Value)
	}
	return strings.Join(s, " ")
}

func TestSaved(t *testing.T) {
	g := graph(`
		to-first: x -> a
		sensitive: a -> b
		sensitive: b -> c
		breaking: c -> y
		x = 1000
		a = 1000
		c = 30`)
	// A pointwise convolution at stride 2: 2 × (8 channels × 25 pixels × 4 bytes) are copied
	// channels first, nothing channels last.
	g.Nodes[2].Unfolds = &Window{Batch: 1, Channels: 8, Group: 1, KernelShape: []int64{1, 1}, Strides: []int64{2, 2},
		Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0}, Size: []int64{5, 5}, ElemBytes: 4}
	e, err := ChannelsLast(g)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := e.Saved(), int64(2*1000-2*30+2*8*25*4); got != want {
		t.Errorf("got %d, want %d: %+v", got, want, e)
	}
}

// TestChannelsLastIsOptimal tries every layout of the agnostic nodes of small graphs.
func TestChannelsLastIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := random(t)
		e, err := ChannelsLast(g)
		if err != nil {
			t.Fatal(err)
		}
		c := g.assign()
		images, err := c.images()
		if err != nil {
			t.Fatal(err)
		}
		bytes, count := int64(math.MaxInt64), 0
		for choice := range 1 << len(g.Nodes) {
			last := func(n int) bool { return n == source || n > sink && choice>>(n-sink-1)&1 == 1 }
			var b int64
			n := 0
			for _, m := range images {
				if m.split(last) && !g.Values[m.value].Same {
					b, n = b+2*g.Values[m.value].Bytes, n+1
				}
			}
			if b < bytes || b == bytes && n < count {
				bytes, count = b, n
			}
		}
		if got, n := byteCount(e.Added)+byteCount(e.Kept), len(e.Added)+len(e.Kept); got != bytes || n != count {
			t.Fatalf("got %d transposes of %d bytes, want %d of %d", n, got, count, bytes)
		}
	})
}

// random draws a graph of up to eight nodes, each of which consumes outputs of earlier ones.
func random(t *rapid.T) *Graph {
	g := &Graph{}
	value := func() int {
		g.Values = append(g.Values, Value{
			Name: fmt.Sprint("v", len(g.Values)), Bytes: rapid.Int64Range(0, 5).Draw(t, "bytes"),
			Same: rapid.IntRange(0, 5).Draw(t, "same") == 0, Output: rapid.IntRange(0, 5).Draw(t, "output") == 0,
		})
		return len(g.Values) - 1
	}
	value()
	value()
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		n := Node{Name: fmt.Sprint("n", i), Role: rapid.SampledFrom([]Role{Breaking, Sensitive, Agnostic, Agnostic,
			Agnostic, ToLast, ToFirst}).Draw(t, "role")}
		reads, writes := 1, 1
		if !n.Role.moves() {
			reads, writes = rapid.IntRange(0, 3).Draw(t, "reads"), rapid.IntRange(0, 2).Draw(t, "writes")
		}
		for range reads {
			n.Inputs = append(n.Inputs, rapid.IntRange(0, len(g.Values)-1).Draw(t, "read"))
		}
		for range writes {
			n.Outputs = append(n.Outputs, value())
		}
		g.Nodes = append(g.Nodes, n)
	}
	return g
}

func TestInvalidGraphs(t *testing.T) {
	for want, g := range map[string]*Graph{
		`node "n": value 7 of 1`: {Values: []Value{{}},
			Nodes: []Node{{Name: "n", Inputs: []int{7}}}},
		`node "n": value -1 of 1`: {Values: []Value{{}},
			Nodes: []Node{{Name: "n", Outputs: []int{-1}}}},
		`node "n": unknown role 99`: {Nodes: []Node{{Name: "n", Role: 99}}},
		`node "n": a transpose has one input`: {Values: []Value{{}},
			Nodes: []Node{{Name: "n", Role: ToLast, Inputs: []int{0}}}},
		`node "m": value "v" has another producer`: {Values: []Value{{Name: "v"}},
			Nodes: []Node{{Name: "n", Outputs: []int{0}}, {Name: "m", Outputs: []int{0}}}},
		`value "v" is part of a cycle`: {Values: []Value{{Name: "v"}, {}},
			Nodes: []Node{{Role: ToLast, Inputs: []int{0}, Outputs: []int{1}},
				{Role: ToFirst, Inputs: []int{1}, Outputs: []int{0}}}},
		`value "v": -1 bytes are invalid`:          {Values: []Value{{Name: "v", Bytes: -1}}},
		`value "v": 9223372036854775807 bytes are`: {Values: []Value{{Name: "v", Bytes: math.MaxInt64}}},
		`node "n": kernel [3], strides [], dilations []`: {Nodes: []Node{{Name: "n",
			Unfolds: &Window{Size: []int64{5}, KernelShape: []int64{3}}}}},
		`node "n": the patches of 9223372036854775807 ch`: {Nodes: []Node{{Name: "n", Unfolds: row(math.MaxInt64)}}},
		`node "m": 5188146770730811392 bytes of patches`: {Nodes: []Node{{Name: "n", Unfolds: row(1 << 58)},
			{Name: "m", Unfolds: row(1 << 58)}}},
	} {
		if e, err := ChannelsLast(g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %+v, %v, want %s", e, err, want)
		}
	}
}

// row is a window of three pixels over rows of five, of one byte each.
func row(channels int64) *Window {
	return &Window{Batch: 1, Channels: channels, Group: 1, KernelShape: []int64{3}, Strides: []int64{1},
		Dilations: []int64{1}, Pads: []int64{0, 0}, Size: []int64{3}, ElemBytes: 1}
}

func BenchmarkChannelsLast(b *testing.B) {
	g := &Graph{Values: []Value{{Name: "x", Bytes: 1000}}}
	add := func(role Role, reads ...int) int {
		g.Values = append(g.Values, Value{Bytes: 1000 + int64(len(g.Values)%7)})
		g.Nodes = append(g.Nodes, Node{Role: role, Inputs: reads, Outputs: []int{len(g.Values) - 1}})
		return len(g.Values) - 1
	}
	v := 0
	for i := range 2000 {
		short := v
		for range 3 {
			v = add(Agnostic, add(Sensitive, v))
		}
		v = add(Agnostic, v, short)
		if i%10 == 9 {
			add(Breaking, v)
		}
	}
	for b.Loop() {
		if _, err := ChannelsLast(g); err != nil {
			b.Fatal(err)
		}
	}
}
