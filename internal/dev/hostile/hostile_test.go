package hostile

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Each value of a document is changed in its place only, equal arguments give equal lies, and each has a name of its own.
func TestLiesOfJSON(t *testing.T) {
	text := `{"a": [1, "x"], "b" : {"c":null}}`
	lies := JSON(text)
	if !slices.Equal(lies, JSON(text)) || !slices.Equal(Binary([]byte(text)), Binary([]byte(text))) {
		t.Error("lies differ")
	}
	byName := map[string]string{}
	for _, l := range slices.Concat(lies, Binary([]byte(text)), YAML(), Lines()) {
		byName[l.Name] = l.Text
	}
	for name, want := range map[string]string{
		" null":               `null`,
		"/a null":             `{"a": null, "b" : {"c":null}}`,
		"/a absent":           `{"absent":[1, "x"], "b" : {"c":null}}`,
		"/a twice":            `{"a": [1, "x"],"a": [1, "x"], "b" : {"c":null}}`,
		"/a/0 -1":             `{"a": [-1, "x"], "b" : {"c":null}}`,
		"/a/1 twice":          `{"a": [1, "x","x"], "b" : {"c":null}}`,
		`/a/1 "../planted"`:   `{"a": [1, "../planted"], "b" : {"c":null}}`,
		"/b/c null and again": `{"a": [1, "x"], "b" : {"c":null,"c":null}}`,
		"/b/c in upper case":  `{"a": [1, "x"], "b" : {"C":null}}`,
	} {
		if got := byName[name]; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	valid := 0
	for _, l := range lies {
		if json.Valid([]byte(l.Text)) {
			valid++
		}
		if len(l.Text) > 100<<10 || strings.Contains(l.Name, "\n") {
			t.Errorf("%s: %d bytes", l.Name, len(l.Text))
		}
	}
	// Decoders that refuse the syntax do not read fields.
	if valid < len(lies)/2 {
		t.Errorf("%d of %d are valid", valid, len(lies))
	}
	if some := Some(lies, 10); len(some) != 10 || some[0] != lies[0] || len(Some(lies, 1<<20)) != len(lies) {
		t.Errorf("%d lies", len(some))
	}
}
