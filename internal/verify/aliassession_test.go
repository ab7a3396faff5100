package verify

import (
	"context"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A named session returns the names it was run with.
type named struct {
	in, out  []string
	ran, got []string
}

func (n *named) Run(_ context.Context, in map[string]*ir.Array, fetch []string) (map[string]*ir.Array, error) {
	out := map[string]*ir.Array{}
	for name := range in {
		n.ran = append(n.ran, name)
	}
	for i, name := range fetch {
		out[name] = ir.ArrayOf([]float32{float32(i)}, 1)
	}
	n.got = fetch
	return out, nil
}
func (n *named) Inputs() []op.Port  { return namedPorts(n.in) }
func (n *named) Outputs() []op.Port { return namedPorts(n.out) }
func (n *named) Close() error       { return nil }

func namedPorts(names []string) []op.Port {
	var ports []op.Port
	for _, name := range names {
		ports = append(ports, op.Port{Name: name})
	}
	return ports
}

// Outputs of a teacher correspond to those of the student by their names, the others by their order, and inputs by
// being the only one.
func TestRenamed(t *testing.T) {
	teacher := &named{in: []string{"pixels"}, out: []string{"scores", "boxes"}}
	s := WithNamesOf(teacher, &named{in: []string{"x"}, out: []string{"boxes", "y"}})
	if in, out := PortNames(s.Inputs()), PortNames(s.Outputs()); in[0] != "x" || out[0] != "y" || out[1] != "boxes" {
		t.Fatalf("inputs %q, outputs %q", in, out)
	}
	got, err := s.Run(t.Context(), map[string]*ir.Array{"x": ir.ArrayOf([]float32{1}, 1)}, []string{"y", "boxes"})
	if err != nil {
		t.Fatal(err)
	}
	if teacher.ran[0] != "pixels" || teacher.got[0] != "scores" || teacher.got[1] != "boxes" {
		t.Errorf("ran on %q for %q", teacher.ran, teacher.got)
	}
	if y := ir.View[float32](got["y"])[0]; y != 0 {
		t.Errorf("y is output %v of the teacher, want the first one of those that were run", y)
	}
	if s = WithNamesOf(teacher, &named{in: []string{"x"}, out: []string{"scores"}}); s.Outputs()[0].Name != "scores" {
		t.Errorf("outputs of models with different numbers of them are renamed to %q", PortNames(s.Outputs()))
	}
}
