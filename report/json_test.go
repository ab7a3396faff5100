package report

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/pass"
)

// awkward is a report with what canonical forms differ in: names outside of ASCII, control characters, small and large
// numbers.
func awkward(t *testing.T) *Report {
	t.Helper()
	w := weight("é\u2028\U0001f600\x01<&>\"\\/\xff", []int64{8}, 1e-7, 2e21, 3, 0.1, -0.25, 5e-5, 7, 8)
	r := (&job{model: network(w, odd()), methods: []*pass.Method{halving, rounding},
		in: Input{Errors: true, Recipe: &Recipe{Text: "steps:\n", Inputs: []RecipeInput{{Name: "ü.npz"}}}}}).build(t)
	return r
}

func TestJSONIsIndented(t *testing.T) {
	var got, compact, want bytes.Buffer
	r := awkward(t)
	if err := r.JSON(&got); err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(&compact, got.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := json.Indent(&want, compact.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String()+"\n" {
		t.Errorf("got\n%s\nwant\n%s", got.Bytes(), want.Bytes())
	}
}

// The digest that is computed while a report is encoded is that of its JSON form, however it is formatted, and of
// nothing else.
func TestDigest(t *testing.T) {
	r := awkward(t)
	var text, compact bytes.Buffer
	if err := r.JSON(&text); err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(&compact, text.Bytes()); err != nil {
		t.Fatal(err)
	}
	escaped := bytes.Replace(text.Bytes(), []byte(`"digest"`), []byte(`"\u0064igest"`), 1)
	for _, form := range [][]byte{text.Bytes(), compact.Bytes(), escaped} {
		if got, err := Digest(form); err != nil || got != r.Digest {
			t.Errorf("got %s, %v, want %s", got, err, r.Digest)
		}
	}
	for _, edit := range [][2]string{{`"after": `, `"after": 1`}, {`"tool": {`, `"tool": {"unknown": 1,`},
		{`"schema_version"`, `"unknown": {}, "schema_version"`}} {
		edited := strings.Replace(text.String(), edit[0], edit[1], 1)
		if got, err := Digest([]byte(edited)); err != nil || got == r.Digest {
			t.Errorf("%s: got %s, %v, want another digest", edit[1], got, err)
		}
	}
	for _, bad := range []string{"", "[]", "1", "{", `{"a"`, `{"a": }`, `{"a": "\xff"}`, `{"a": 1, "a": 2}`,
		`{"a": {"b": 1, "b": 2}}`, "{} {}", strings.Repeat(`{"a":`, 20_000)} {
		if got, err := Digest([]byte(bad)); err == nil {
			t.Errorf("%.20q: got %s, want an error", bad, got)
		}
	}
}

// The lines of Python in the guide compute both digests.
func TestDigestInPython(t *testing.T) {
	guide, err := os.ReadFile("../docs/guide/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(guide), "```python\n")
	code, _, found := strings.Cut(code, "```")
	if !found {
		t.Fatal("the guide has no lines of Python")
	}
	r := awkward(t)
	if r.Recipe.SHA256, err = r.Recipe.Sum(); err != nil {
		t.Fatal(err)
	}
	if r.Digest, err = r.digest(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.report.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.JSON(f); err != nil {
		t.Fatal(err)
	}
	f.Close()
	out, err := exec.CommandContext(t.Context(), conform.Python(t), "-c", code, path).CombinedOutput()
	if err != nil || string(out) != "report "+r.Digest+" True\nrecipe "+r.Recipe.SHA256+" True\n" {
		t.Errorf("%v: %s", err, out)
	}
}
