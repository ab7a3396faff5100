package mcompress_test

import (
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/ir"
)

// growing are the names of what grows.
func growing(p *mcompress.MemoryProfile) map[string]bool {
	names := map[string]bool{}
	for _, g := range p.Growth() {
		if g.Grows {
			names[g.Name] = true
		}
	}
	return names
}

func TestMemoryProfileOfRuns(t *testing.T) {
	for name, retain := range map[string]bool{"retained outputs": true, "released outputs": false} {
		t.Run(name, func(t *testing.T) {
			var p mcompress.MemoryProfile
			s, err := mcompress.NewSession(t.Context(), "fixtures/mlp.onnx",
				mcompress.SessionOptions{Memory: &p, Limits: mcompress.Limits{Workers: 1}})
			if err != nil {
				t.Fatal(err)
			}
			in := s.Inputs()[0]
			x := ir.NewArray(ir.Float, 200, 1, 20, 20)
			var kept []map[string]*ir.Array
			for range 40 {
				out, err := s.Run(t.Context(), map[string]*ir.Array{in.Name: x})
				if err != nil {
					t.Fatal(err)
				}
				if retain {
					kept = append(kept, out)
				}
			}
			m := p.Memory()
			if m.Sessions != 1 || m.Runs != 40 || m.Weights == 0 || m.Arenas == 0 || m.Running != 0 {
				t.Errorf("got %+v", m)
			}
			if retain && (m.Outputs != 40 || m.OutputBytes != 40*200*10*4) {
				t.Errorf("%d outputs of %d bytes", m.Outputs, m.OutputBytes)
			}
			got := growing(&p)
			if got["output bytes"] != retain || got["running"] || got["arenas"] || got["open sessions"] {
				t.Errorf("growing: %v; %+v", got, p.Growth())
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if m := p.Memory(); m.Sessions != 0 || m.Weights != 0 {
				t.Errorf("after Close: %+v", m)
			}
			_ = kept
		})
	}
}

// Sessions that are not closed grow in number, with their weights.
func TestMemoryProfileOfForgottenSessions(t *testing.T) {
	var p mcompress.MemoryProfile
	for range 16 {
		s, err := mcompress.NewSession(t.Context(), "fixtures/mlp.onnx",
			mcompress.SessionOptions{Memory: &p, Limits: mcompress.Limits{Workers: 2}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		in := s.Inputs()[0]
		x := ir.NewArray(ir.Float, 1, 1, 20, 20)
		if _, err := s.Run(t.Context(), map[string]*ir.Array{in.Name: x}); err != nil {
			t.Fatal(err)
		}
	}
	got := growing(&p)
	if p.Memory().Sessions != 16 || !got["open sessions"] || !got["weights"] || !got["goroutines"] {
		t.Errorf("%+v; growing: %v", p.Memory(), got)
	}
}
