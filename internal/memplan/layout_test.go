package memplan

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/memory/layout"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// Values are float[1,8,6,6] unless a case states otherwise; a transpose reads and writes them.
const image = 2 * 8 * 6 * 6 * 4

func TestLayoutOfNetworks(t *testing.T) {
	for _, c := range []struct {
		name            string
		b               *builder
		added, vanished string
		sensitive       int
	}{
		{"pooled at the end: one pixel has no layout", build("x", 1, 8, 6, 6).
			conv("a", 8, 8, 1).node("Relu:r", nil).node("GlobalAveragePool:p", nil).node("Flatten:f", nil), "x", "", 2},
		{"flattened", build("x", 1, 8, 6, 6).conv("a", 8, 8, 1).node("Clip:r", nil).node("Flatten:f", nil), "x a", "", 1},
		{"one channel at the start", build("x", 1, 1, 6, 6).conv("a", 8, 1, 1), "a", "", 1},
		{"of a framework with channels last", build("x", 1, 6, 6, 8).
			node("Transpose:t", nil, ir.IntsAttr("perm", 0, 3, 1, 2)).conv("a", 8, 8, 1).
			node("Transpose:u", nil, ir.IntsAttr("perm", 0, 2, 3, 1)).node("Softmax:s", nil), "", "x a", 1},
		{"three axes", build("x", 1, 36, 8).node("Transpose:t", nil, ir.IntsAttr("perm", 0, 2, 1)).line("a", 8, 8).
			node("Transpose:u", nil, ir.IntsAttr("perm", 0, 2, 1)), "", "x a", 1},
		{"heads are no layout", build("x", 1, 8, 6, 6).node("Transpose:t", nil, ir.IntsAttr("perm", 0, 2, 1, 3)), "", "", 0},
		{"reduced to nothing", build("x", 1, 8, 6, 6).conv("a", 8, 8, 1).
			node("ReduceMean:m", nil, ir.IntsAttr("axes", 2, 3), ir.IntAttr("keepdims", 0)), "x a", "", 1},
		{"reduced to one pixel", build("x", 1, 8, 6, 6).conv("a", 8, 8, 1).node("ReduceMean:m", nil,
			ir.IntsAttr("axes", 2, 3)), "x", "", 1},
		{"no images", build("x", -1, 8).node("Relu:r", nil), "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := c.b.facts(t, Options{Layout: true}).Layout
			if names(l.Added) != c.added || names(l.Vanished) != c.vanished || len(l.Kept) > 0 || l.Sensitive != c.sensitive {
				t.Errorf("got %+v, want to add %q and remove %q", l, c.added, c.vanished)
			}
			saved := int64(0)
			for _, m := range l.Vanished {
				saved += m.Bytes
			}
			for _, m := range l.Added {
				saved -= m.Bytes
			}
			if l.Saved != saved+l.First.Bytes-l.Last.Bytes {
				t.Errorf("%d bytes are saved, want %d", l.Saved, saved)
			}
			for _, m := range slices.Concat(l.Added, l.Vanished) {
				if m.Bytes != image {
					t.Errorf("%s: %d bytes are moved, want %d", m.Value, m.Bytes, image)
				}
			}
		})
	}
}

// line is a convolution over one axis.
func (b *builder) line(name string, out, in int64) *builder {
	return b.node("Conv:"+name, []*ir.Value{b.weight(out, in, 1)})
}

func names(ms []memoryplan.Move) string {
	var s []string
	for _, m := range ms {
		s = append(s, m.Value)
	}
	return strings.Join(s, " ")
}

// Broadcasting counts axes from the end, so that a value of fewer axes is added to other pixels
// than before.
func TestBroadcastingBreaksLayouts(t *testing.T) {
	b := build("x", 1, 6, 6, 6).conv("a", 6, 6, 1)
	a := b.last
	b.node("ReduceMean:m", nil, ir.IntsAttr("axes", 0, 2, 3), ir.IntAttr("keepdims", 0)).node("Mul:y", []*ir.Value{a})
	if l := b.facts(t, Options{Layout: true}).Layout; names(l.Added) != "x a" {
		t.Errorf("got %+v, want one transpose of a for both of its consumers", l.Added)
	}
}

// Patches are kernel × channels for each pixel of the output; a convolution of one channel by one
// copies none.
func TestPatches(t *testing.T) {
	pads, group := ir.IntsAttr("pads", 1, 1, 1, 1), ir.IntAttr("group", 8)
	b := build("x", 2, 8, 6, 6).conv("a", 4, 8, 3, pads)
	if got, want := b.facts(t, Options{Layout: true}).Layout, int64(2*2*8*9*36*4); got.First.Bytes != want ||
		got.Last.Bytes != want {
		t.Errorf("got %+v, want %d bytes", got, want)
	}
	b = build("x", 2, 8, 6, 6).conv("a", 8, 1, 3, pads, group)
	if got := b.facts(t, Options{Layout: true}).Layout; got.First != (memoryplan.Patches{}) ||
		got.Last != (memoryplan.Patches{}) {
		t.Errorf("got %+v of a convolution by channels", got)
	}
	// At stride 2 a pointwise convolution copies every other pixel, unless channels are last.
	b = build("x", 2, 8, 6, 6).conv("a", 4, 8, 1, ir.IntsAttr("strides", 2, 2), ir.StringAttr("auto_pad", "SAME_UPPER"))
	if got, want := b.facts(t, Options{Layout: true}).Layout, int64(2*2*8*9*4); got.First.Bytes != want ||
		got.Last != (memoryplan.Patches{}) {
		t.Errorf("got %+v, want %d bytes channels first", got, want)
	}
}

func TestLayoutRulesDependOnTheNode(t *testing.T) {
	b := build("x", 1, 8, 6, 6)
	other := b.typed("other", 1)
	node := func(op, domain string, more []*ir.Value, attrs ...*ir.Attr) *ir.Node {
		n := b.Graph.NewNode(ir.OpID{Domain: domain, Type: op}, append([]*ir.Value{b.last}, more...), attrs...)
		n.SetOutputs(b.Graph.NewValue(op))
		b.Graph.Append(n)
		return n
	}
	for _, c := range []struct {
		n     *ir.Node
		opset int64
		want  layout.Role
	}{
		{node("Conv", "", nil), 17, layout.Sensitive},
		{node("Conv", "elsewhere", nil), 17, layout.Breaking},
		{node("FusedConv", "com.microsoft", nil), 17, layout.Sensitive},
		{node("Reshape", "", nil), 17, layout.Breaking},
		{node("Softmax", "", nil), 13, layout.Agnostic},
		{node("Softmax", "", nil), 12, layout.Breaking}, // it flattened the axes after its axis
		{node("Pad", "", []*ir.Value{b.weight(8)}), 17, layout.Agnostic},
		{node("Pad", "", []*ir.Value{other}), 17, layout.Breaking},
		{node("Transpose", "", nil), 17, layout.Breaking},
		{node("Transpose", "", nil, ir.IntsAttr("perm", 0, 2, 3, 1)), 17, layout.ToLast},
		{node("Transpose", "", nil, ir.IntsAttr("perm", 0, 3, 1, 2)), 17, layout.ToFirst},
	} {
		b.Opsets = []ir.Opset{{Version: c.opset}}
		if got := ruleOf(c.n).roleOf(c.n, 4); got != c.want {
			t.Errorf("%s of opset %d: role %d, want %d", c.n.Op, c.opset, got, c.want)
		}
	}
}
