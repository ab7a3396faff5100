package pass_test

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// documents is the bound of documents that are read twice by the parser of YAML, which takes kilobytes for a token.
var documents = oracle.Bound{Memory: oracle.Linear.Memory, MemoryPerByte: 8 << 10, Time: oracle.Linear.Time, TimePerByte: oracle.Linear.TimePerByte}

// Documents are read as those of recipes and of policies are. Errors have one line.
func FuzzYAML(f *testing.F) {
	hostile.Seed(f, hostile.YAML(), "gates:\n  min-ratio: 2\n  max-accuracy-drop: 1%\nbaseline: main.report.json\nallow-random-inputs: true\n",
		"steps:\n- {method: prune, amount: 0.5, skip: [a, \"op:Gemm\"]}\n")
	f.Fuzz(func(t *testing.T, text []byte) {
		documents.Check(t, len(text), func() {
			var policy struct {
				Gates       yaml.MapSlice `yaml:"gates"`
				Baseline    string        `yaml:"baseline"`
				AllowRandom bool          `yaml:"allow-random-inputs"`
			}
			if err := bounded.StrictYAML(text, &policy); err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %v", err)
			}
			recipe, err := pass.ParseRecipe(known(), text)
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %v", err)
			}
			if err != nil {
				return
			}
			written, err := recipe.Text(nil)
			if err != nil {
				t.Fatal(err)
			}
			again, err := pass.ParseRecipe(known(), written)
			if err != nil || len(again.Steps) != len(recipe.Steps) {
				t.Errorf("%q becomes %q: %v", text, written, err)
			}
		})
	})
}

// Patterns that are accepted are compared with names in time, and are accepted again as they are written.
func FuzzPatterns(f *testing.F) {
	for _, text := range append(hostile.Names(), "a*", "op:Gemm", "{a,b},c", `\,`, "[a-z]", "**/*", strings.Repeat("*a", 50), strings.Repeat("{a,b}", 30),
		strings.Repeat("{", 100)+"a"+strings.Repeat("}", 100), strings.Repeat("**/", 50)+"x") {
		f.Add(text, strings.Repeat("a", 60))
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		oracle.Linear.Check(t, len(text)+len(name), func() {
			var g, again pass.Globs
			if err := g.Set(text); err != nil {
				return
			}
			if err := again.Set(g.String()); err != nil || again.String() != g.String() {
				t.Errorf("%q becomes %q, %v", text, g, err)
			}
			g.Node(&ir.Node{Name: name, Op: ir.OpID{Type: name}})
		})
	})
}
