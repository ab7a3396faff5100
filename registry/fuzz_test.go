package registry_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
	"github.com/mcompress/mcompress/registry"
	_ "github.com/mcompress/mcompress/registry/mlflow"
	_ "github.com/mcompress/mcompress/registry/oci"
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

// A reference that is accepted is the same after it is written.
func FuzzReference(f *testing.F) {
	for _, text := range []string{
		"oci://host:5000/a/b:tag", "oci://host/a@sha256:" + strings.Repeat("0", 64), "mlflow://host:80/prefix/name@champion", "mlflow://host/m@v1",
		"hf:folder", "dir:../folder", "oci://user:password@host/a:1", "mlflow://user@host/a",
	} {
		f.Add(text)
		for _, name := range hostile.Names() {
			f.Add(text + name)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		oracle.Linear.Check(t, len(text), func() {
			ref, err := registry.Parse(text)
			if err != nil {
				return
			}
			if again, err := registry.Parse(ref.String()); err != nil || again != ref {
				t.Errorf("%q becomes %+v, and that %+v, %v", text, ref, again, err)
			}
		})
	})
}
