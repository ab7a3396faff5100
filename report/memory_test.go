package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/memory"
)

// nodesOf is a chain of so many nodes, the one at the peak with scratch of 1 MiB.
func nodesOf(t *testing.T, nodes, peak int, name func(i int) string) *Memory {
	t.Helper()
	m := &Memory{Model: "chain.onnx", Run: "inference, batch 1"}
	var blocks []memory.Block
	for i := range nodes {
		m.Steps = append(m.Steps, name(i))
		blocks = append(blocks, memory.Block{Name: name(i) + ".output", Kind: memory.Activation, Bytes: 1 << 10, First: i,
			Last: min(i+1, nodes-1)})
	}
	blocks = append(blocks, memory.Block{Name: "patches", Kind: memory.Scratch, Bytes: 1 << 20, First: peak, Last: peak})
	var err error
	if m.Plan, err = memory.Place(blocks); err != nil {
		t.Fatal(err)
	}
	m.Held = []memory.Block{{Name: "w", Kind: memory.Weight, Bytes: 1 << 19},
		{Name: "b", Kind: memory.Weight, Bytes: 1 << 19}}
	return m
}

func node(i int) string { return fmt.Sprint("node", i) }

func memoryHTML(t *testing.T, m *Memory) string {
	t.Helper()
	return content(t, m.HTML)
}

func TestMemoryPageIsSelfContained(t *testing.T) {
	page := memoryHTML(t, nodesOf(t, 12, 5, node))
	for _, bad := range []string{"http", "<script", "<link", "<img", "<iframe", "@import", "url(", "src=", "xlink",
		"ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1) {
		if regexp.MustCompile(`(fill|stroke)[:=]"?#`).MatchString(svg) {
			t.Error("a chart has colours of its own")
		}
	}
}

func TestMemoryPageListsLiveBlocksAtThePeak(t *testing.T) {
	page := memoryHTML(t, nodesOf(t, 12, 5, node))
	for _, want := range []string{
		"2.0 MiB",                              // 1 MiB of weights, 1 MiB and 2 KiB in the arena
		"at node5, step 6 of 12",               // the peak
		"peak 2.0 MiB at node5</text>",         // in the plot
		"persistent and arena 2.0 MiB</text>",  // so too
		">node11</text>",                       // the axis names nodes
		"2 blocks",                             // the weights
		"patches<small>node5</small>",          // scratch lives for one node
		"node4.output<small>node4 → node5",     // activations for more
		`<span class="key scratch">scratch</s`, // with its kind
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "node3.output") {
		t.Error("the table has a block that is dead at the peak")
	}
}

func TestMemoryPageOfManySteps(t *testing.T) {
	page := memoryHTML(t, nodesOf(t, 5000, 4321, node))
	if !strings.Contains(page, "step 2,000</text>") || strings.Contains(page, ">node7</text>") {
		t.Error("the axis of many steps does not number them")
	}
	if strings.Contains(page, "Blocks in the arena") {
		t.Error("a drawing of more blocks than can be seen")
	}
	if len(page) > 1<<20 {
		t.Errorf("the page has %d bytes, want no more than 1 MiB", len(page))
	}
}

func TestColumnsKeepThePeak(t *testing.T) {
	for _, peak := range []int{0, 1, 777, 4998, 4999} {
		m := nodesOf(t, 5000, peak, node)
		line, err := m.timeline()
		if err != nil {
			t.Fatal(err)
		}
		s := newStack(line)
		var most int64
		for _, u := range s.usage {
			most = max(most, u.Total())
		}
		if most != line.Peak || len(s.usage) != maxColumns || s.edges[maxColumns] != 5000 {
			t.Errorf("peak at %d: got %d bytes in %d maxColumns up to %g, want %d", peak, most, len(s.usage),
				s.edges[maxColumns], line.Peak)
		}
	}
}

func TestMemoryPageEscapesNames(t *testing.T) {
	m := nodesOf(t, 3, 1, func(int) string { return hostile })
	m.Model, m.Run = hostile, hostile
	page := memoryHTML(t, m)
	if strings.Contains(page, "<script") || strings.Contains(page, "\u202e") {
		t.Error("a name got through as it is")
	}
}

func TestMemoryPageOfNothing(t *testing.T) {
	plan, err := memory.Place(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Memory{{Plan: plan}, {Plan: plan, Steps: []string{"", "b"}}} {
		if page := memoryHTML(t, m); !strings.Contains(page, "no live bytes") {
			t.Errorf("the page of %d steps does not say that no live bytes", len(m.Steps))
		}
	}
}

func TestMemoryNeedsAStepForEachBlock(t *testing.T) {
	m := nodesOf(t, 3, 1, node)
	m.Steps = m.Steps[:2]
	if err := m.HTML(io.Discard); err == nil {
		t.Error("got a page of blocks that live longer than the run")
	}
}
