package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// layersOf is a tape of a chain of n products, each of which saves its input; x is an input of the graph.
func layersOf(n int, bytes int64) *Tape {
	t := &Tape{Values: []TapeValue{{Name: "x", Bytes: bytes}}}
	for i := range n {
		t.Values = append(t.Values, TapeValue{Name: fmt.Sprint("y", i), Bytes: bytes, Grad: true, Output: i == n-1})
		t.Nodes = append(t.Nodes, TapeNode{Name: fmt.Sprint("mul", i), Reads: []int{i}, Makes: []int{i + 1}, Saves: []int{i}, Backward: true})
	}
	return t
}

func passes(t interface{ Fatal(...any) }, tape *Tape, segments []int) *Passes {
	p, err := tape.Plan(segments)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Peak(); err != nil {
		t.Fatal(err)
	}
	return p
}

func peakOf(t interface{ Fatal(...any) }, tape *Tape, segments []int) int64 {
	n, _, err := passes(t, tape, segments).Peak()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A chain stores all values; at the end of the forward pass the output and its gradient are live too.
func TestChainStoresAllValues(t *testing.T) {
	p := passes(t, layersOf(5, 100), nil)
	if got := peakOf(t, layersOf(5, 100), nil); got != 700 {
		t.Errorf("a peak of %d, want the input, five values and a gradient", got)
	}
	for i, l := range p.Layers {
		want := Layer{Output: 100, Kept: 100, Gradient: 100}
		if i == 0 {
			want.Gradient = 0 // the gradient of the input is not computed
		}
		if i == 4 {
			want.Kept = 0 // the output is read by the loss only
		}
		if l != want {
			t.Errorf("layer %d: %+v, want %+v", i, l, want)
		}
	}
	if want := "mul0 mul1 mul2 mul3 mul4 loss mul4 backward mul3 backward mul2 backward mul1 backward mul0 backward"; strings.Join(p.Steps, " ") != want {
		t.Errorf("steps %v", p.Steps)
	}
}

// Chen et al.: with a checkpoint every √n layers, a chain of n equal layers needs O(√n) memory.
func TestCheckpointsNeedRootMemory(t *testing.T) {
	for _, n := range []int{16, 100, 400} {
		tape := layersOf(n, 1)
		segments, err := tape.Checkpoints()
		if err != nil {
			t.Fatal(err)
		}
		root := int64(1)
		for root*root < int64(n) {
			root++
		}
		best := peakOf(t, tape, segments)
		if plain := peakOf(t, tape, nil); plain != int64(n)+2 || best > 2*root+4 || best < root {
			t.Errorf("%d layers: %d, with checkpoints at %v %d", n, plain, segments, best)
		}
		if even := peakOf(t, tape, tape.Every(int(root))); best > even {
			t.Errorf("%d layers: %d, at every %d-th %d", n, best, root, even)
		}
	}
}

// A value overwritten in place shares its buffer; one that its producer still reads does not.
func TestValuesInPlace(t *testing.T) {
	tape := layersOf(1, 100)
	tape.Values[1].Output = false
	tape.Values = append(tape.Values, TapeValue{Name: "relu", Bytes: 100, Grad: true, Output: true})
	relu := TapeNode{Name: "relu", Reads: []int{1}, Makes: []int{2}, Saves: []int{2}, Over: []int{1}, Backward: true}
	tape.Nodes = append(tape.Nodes, relu)
	p := passes(t, tape, nil)
	if p.Layers[0].Output != 100 || p.Layers[0].Kept != 100 || p.Layers[1] != (Layer{}) {
		t.Errorf("in place: %+v", p.Layers)
	}
	tape.Nodes[0].Saves = []int{0, 1}
	if p := passes(t, tape, nil); p.Layers[1].Output != 100 {
		t.Errorf("in place over a saved value: %+v", p.Layers)
	}
	tape.Nodes[0].Saves = []int{0}
	if p := passes(t, tape, []int{0, 1}); p.Layers[1].Output != 100 {
		t.Errorf("in place over a value of another segment: %+v", p.Layers)
	}
	tape.Nodes[1].View, tape.Nodes[1].Over = true, nil
	if p := passes(t, tape, nil); p.Layers[1].Output != 0 {
		t.Errorf("as a view: %+v", p.Layers)
	}
}

// tapes draws graphs whose nodes consume some of the earlier values.
func tapes(t *rapid.T) *Tape {
	tape := &Tape{Values: []TapeValue{{Name: "x", Bytes: rapid.Int64Range(0, 100).Draw(t, "x")}}}
	for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
		n := TapeNode{Name: fmt.Sprint("n", i), Backward: rapid.IntRange(0, 4).Draw(t, "backward") > 0, Extra: rapid.Int64Range(0, 9).Draw(t, "extra")}
		for range rapid.IntRange(1, 2).Draw(t, "reads") {
			n.Reads = append(n.Reads, rapid.IntRange(max(0, len(tape.Values)-4), len(tape.Values)-1).Draw(t, "read"))
		}
		n.Makes = []int{len(tape.Values)}
		for _, v := range slices.Concat(n.Reads, n.Makes) {
			if rapid.Bool().Draw(t, "saves") {
				n.Saves = append(n.Saves, v)
			}
		}
		if rapid.Bool().Draw(t, "over") && !slices.Contains(n.Saves, n.Reads[0]) {
			n.Over = n.Reads[:1]
		}
		bytes := rapid.SampledFrom([]int64{tape.Values[n.Reads[0]].Bytes, 7, 50}).Draw(t, "bytes")
		tape.Values = append(tape.Values, TapeValue{Name: n.Name, Bytes: bytes, Grad: n.Backward, Output: rapid.IntRange(0, 5).Draw(t, "output") == 0})
		tape.Nodes = append(tape.Nodes, n)
	}
	return tape
}

// The inputs of each step are live: in the forward pass, when it is recomputed, and in the backward pass. At most all values, gradients and
// extra data are live.
func TestInputsOfStepsAreLive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tape := tapes(t)
		segments := tape.Every(rapid.IntRange(1, 13).Draw(t, "every"))
		s, err := newSchedule(tape, segments)
		if err != nil {
			t.Fatal(err)
		}
		p := passes(t, tape, segments)
		live := func(v, step int) bool {
			r := s.buffers[s.bufferOf[v]]
			name := tape.Values[r.values[len(r.values)-1]].Name
			return r.bytes == 0 || slices.ContainsFunc(p.Blocks, func(b Block) bool {
				return b.Kind == Activation && b.Name == name && b.First <= step && step <= b.Last
			})
		}
		for i, n := range tape.Nodes {
			for _, v := range slices.Concat(n.Reads, n.Makes) {
				if !live(v, i) || s.recompute[i] >= 0 && slices.Contains(n.Reads, v) && !live(v, s.recompute[i]) {
					t.Fatalf("%s: %s is not there", n.Name, tape.Values[v].Name)
				}
			}
			for _, v := range n.Saves {
				if s.back[i] >= 0 && !live(v, s.back[i]) {
					t.Fatalf("%s: %s was not kept", n.Name, tape.Values[v].Name)
				}
			}
		}
		most := int64(0)
		for _, v := range tape.Values {
			most += 2 * v.Bytes
		}
		for _, n := range tape.Nodes {
			most += n.Extra
		}
		if got, _, err := p.Peak(); err != nil || got > most {
			t.Fatalf("%d bytes of %d, %v", got, most, err)
		}
	})
}

func TestInvalidTapes(t *testing.T) {
	for _, c := range []struct {
		tape     *Tape
		segments []int
		want     string
	}{
		{layersOf(3, 1), []int{1}, "segments begin at [1] of 3 nodes"},
		{layersOf(3, 1), []int{0, 2, 2}, "segments begin at [0 2 2] of 3 nodes"},
		{layersOf(3, 1), []int{0, 3}, "segments begin at [0 3] of 3 nodes"},
		{&Tape{Nodes: []TapeNode{{Name: "n", Reads: []int{0}}}}, nil, `node "n": no value 0`},
		{&Tape{Values: make([]TapeValue, 1), Nodes: []TapeNode{{Makes: []int{0}}, {Makes: []int{0}}}}, nil, `value "" is made twice`},
	} {
		if _, err := c.tape.Plan(c.segments); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
