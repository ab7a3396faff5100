package registry_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// cards is the bound of model cards: the parser of YAML takes kilobytes for a token.
var cards = oracle.Bound{Memory: oracle.Linear.Memory, MemoryPerByte: 8 << 10, Time: oracle.Linear.Time, TimePerByte: oracle.Linear.TimePerByte}

// What is taken from the card of a model is the name of a model and a task.
func FuzzCard(f *testing.F) {
	valid := "---\nbase_model: owner/name\npipeline_tag: image-classification\ntags: [x]\n---\n# Text\n"
	f.Add([]byte(valid))
	for _, l := range hostile.YAML() {
		f.Add([]byte("---\n" + l.Text + "\n---\n# Text\n"))
	}
	for _, name := range hostile.Names() {
		f.Add([]byte(strings.Replace(valid, "owner/name", name, 1)))
	}
	path := filepath.Join(f.TempDir(), "m.card.md")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		cards.Check(t, len(text), func() {
			base, task, err := registry.AdoptCard(path)
			if err == nil && (report.Card{BaseModel: base, PipelineTag: task}).Check() != nil {
				t.Errorf("%q and %q are accepted", base, task)
			}
		})
	})
}
