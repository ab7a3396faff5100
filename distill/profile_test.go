package distill

import (
	"github.com/mcompress/mcompress/ir"
	"math"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/profile"
)

// A profile of training has all phases, and the memory that the plan has.
func TestProfilesOfTraining(t *testing.T) {
	for name, options := range map[string][]string{
		"recomputation": {"checkpoint", "every=3"},
		"accumulation":  {"accumulate", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			data := []string{"data", samples(t, 300), "labels", "label", "steps", "12", "batch", "30"}
			r, e, s := profile.New(), ir.NewEval(t.TempDir()), parse(t, append(data, options...)...)
			defer e.Close()
			s.Recorder = r
			tr := newTrainer(network(1, features, 64, 64, classes), e, serial, s)
			defer tr.close()
			if err := tr.prepare(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if err := tr.train(t.Context()); err != nil {
				t.Fatal(err)
			}
			p := r.Profile()
			if p.Steps != 12 {
				t.Fatalf("%d steps", p.Steps)
			}
			seen, sum := map[string]profile.Row{}, 0.0
			for _, row := range p.Phases {
				seen[row.Phase], sum = row, sum+row.Seconds
				if row.Seconds < 0 {
					t.Errorf("%+v", row)
				}
			}
			if math.Abs(sum-p.Seconds) > 1e-9 {
				t.Errorf("phases take %v of %v s", sum, p.Seconds)
			}
			for _, phase := range []grad.Phase{grad.Forward, grad.Backward, grad.Update} {
				if seen[string(phase)].Calls == 0 {
					t.Errorf("no nodes of phase %s: %+v", phase, p.Phases)
				}
			}
			if got := seen[string(grad.Recomputation)].Calls > 0; got != (name == "recomputation") {
				t.Errorf("recomputation: %v", got)
			}
			if seen[profile.Waiting].Seconds == 0 {
				t.Error("no time of waiting")
			}
			for _, row := range p.Operators {
				if backward := row.Phase == string(grad.Backward); row.Name == "mcompress.ReluGrad" && !backward ||
					row.Name == "Relu" && backward || row.Name == "mcompress.AdamUpdate" && row.Phase != string(grad.Update) {
					t.Errorf("%+v", row)
				}
			}
			if p.Peak.Arena > tr.memory.Arena+64<<10 || p.Peak.ByKind["gradient"] == 0 || p.Held["state"] != tr.memory.States ||
				p.Waste.Unused != 0 {
				t.Errorf("peak %+v, held %v, waste %+v; the plan is %+v", p.Peak, p.Held, p.Waste, tr.memory)
			}
			for _, g := range p.Growth {
				if g.Grows && g.Name != "goroutines" {
					t.Errorf("grows: %+v", g)
				}
			}
		})
	}
}
