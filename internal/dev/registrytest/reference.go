package registrytest

import (
	"testing"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
	"github.com/mcompress/mcompress/registry"
)

// FuzzReference adds a target of references, such as valid ones: one that is accepted is the same after it is written.
func FuzzReference(f *testing.F, valid ...string) {
	for _, text := range valid {
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
