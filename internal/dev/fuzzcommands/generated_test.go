package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/modelgen"
	"github.com/mcompress/mcompress/quantize"
)

// Results that break a property are findings: here the result is the source, or one with another weight, and the report
// is made up.
func TestFindingsOfGeneratedModels(t *testing.T) {
	seed := ordinary(t)
	const rows = `"weights":[%s]`
	tensor := func(names []string) string {
		var list []string
		for _, name := range names {
			list = append(list, fmt.Sprintf(`{"tensor":%q}`, name))
		}
		return fmt.Sprintf(rows, strings.Join(list, ","))
	}
	n := modelgen.New(seed).Constants()
	for name, c := range map[string]struct {
		spoil  bool
		report string
		want   string
	}{
		"right":        {false, tensor(n), ""},
		"wrong size":   {false, `"result":{"files":[{"name":"out.onnx","bytes":3}]}`, "the report states 3 bytes"},
		"wrong total":  {false, `"totals":{"file_bytes":{"after":3}},` + tensor(n), "files of "},
		"missing row":  {false, tensor(n[1:]), "constant " + n[0] + " has 0 rows"},
		"repeated row": {false, tensor(append(n, n[0])), "constant " + n[0] + " has 2 rows"},
		"better than it is": {true, `"verification":{"outputs":[{"name":"OUT","errors":{"sqnr_db":40}}]},` +
			tensor(n), "output OUT has "},
	} {
		t.Run(name, func(t *testing.T) {
			m := modelgen.New(seed)
			g := &generatedCase{testCase: &testCase{dir: t.TempDir(), random: rand.New(rand.NewPCG(1, 1))},
				worker: conform.Start(t), model: m}
			g.args, g.method = []string{"quantize", "--method", "weight-int8"}, quantize.WeightInt8{}.Method()
			if err := g.write(); err != nil {
				t.Fatal(err)
			}
			result := m.Clone()
			if c.spoil {
				for _, w := range result.Graph.Constants {
					w.Data = make([]byte, len(w.Data))
				}
			}
			if err := result.Write(g.testCase.out()); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(g.testCase.out())
			if err != nil {
				t.Fatal(err)
			}
			out := m.Graph.Outputs[0].Name
			sizes := fmt.Sprintf(`"result":{"files":[{"name":"out.onnx","bytes":%d}]},"totals":{"file_bytes":{"before":%[1]d,"after":%[1]d}},`, info.Size())
			if strings.Contains(c.report, "file_bytes") {
				sizes, _, _ = strings.Cut(sizes, `"totals"`)
			}
			if strings.Contains(c.report, "files") {
				sizes = ""
			}
			text := "{" + sizes + strings.ReplaceAll(c.report, "OUT", out) + "}"
			if err := os.WriteFile(filepath.Join(g.dir, "out.report.json"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, property := range []func(context.Context) string{g.refusal, g.judged, g.figures, g.rows} {
				if got = property(t.Context()); got != "" {
					break
				}
			}
			want := strings.ReplaceAll(c.want, "OUT", out)
			if want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// ordinary is a seed of one layer with an ordinary weight.
func ordinary(t *testing.T) uint64 {
	for seed := range uint64(100) {
		if m := modelgen.New(seed); m.Ordinary() && !m.Discontinuous() {
			return seed
		}
	}
	t.Fatal("no ordinary model")
	return 0
}

// The kind of a finding has neither names nor numbers.
func TestKind(t *testing.T) {
	a := kind(`output v_3 has 12.5 dB in ONNX Runtime, the report states 40.0 dB`)
	if b := kind(`output v_17 has -3 dB in ONNX Runtime, the report states 9.1 dB`); a != b {
		t.Errorf("%q and %q", a, b)
	}
}
