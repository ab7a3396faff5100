package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

// documented are reports for documents of other formats, by the names of their golden files.
func documented(t *testing.T) map[string]*Report {
	plain := (&job{model: network(odd()), methods: []*pass.Method{rounding},
		in: Input{Errors: true, Verification: evaluated("digits_test.npz"),
			Gates: []Limit{{"min-ratio", 0.5}, {"max-accuracy-drop", 0.01}}}}).build(t)
	plain.Recipe.Inputs = []RecipeInput{{"digits_train.npz", strings.Repeat("5a", 32)}, {"teacher.onnx", ""}}
	plain.Result.Files = append(plain.Result.Files, File{"net small.data", 12, strings.Repeat("6b", 32)})
	plain.Hints = []string{"needs ONNX Runtime 1.20"}
	random := (&job{model: network(odd()), methods: []*pass.Method{rounding},
		in: Input{Verification: layered(3, node)}}).build(t)
	bare := (&job{model: network(odd()), methods: []*pass.Method{rounding}}).build(t)
	bare.Recipe, bare.Digest = nil, ""
	v := evaluated(hostile)
	v.Outputs[0].Name, v.Metric.Name = hostile, hostile
	strange := (&job{model: network(odd()), methods: []*pass.Method{rounding},
		in: Input{Errors: true, Verification: v}}).build(t)
	strange.Source.Files[0].Name, strange.Result.Files[0].Name, strange.Recipe.Text = hostile, "a:b \xff%zz"+hostile,
		hostile
	strange.Recipe.Inputs = []RecipeInput{{hostile, strings.Repeat("5a", 32)}}
	return map[string]*Report{"plain": plain, "random": random, "bare": bare, "hostile": strange}
}

// withoutDigests replaces what depends on every figure of the report, so that golden files are about their own format.
func withoutDigests(t *testing.T, r *Report, text []byte) []byte {
	t.Helper()
	sum, err := r.digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum = cmp.Or(r.Digest, sum)
	file := sha256.Sum256(written(t, r.JSON))
	return []byte(strings.NewReplacer(sum, "DIGEST", serialNumber(sum), "SERIAL", hex.EncodeToString(file[:]),
		"SHA-256 OF THE JSON FORM").Replace(string(text)))
}

func written(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A bill of materials is valid, and a function of the report.
func TestCycloneDX(t *testing.T) {
	for name, r := range documented(t) {
		write := func(w io.Writer) error { return r.CycloneDX(w, Card{PipelineTag: "image-classification"}) }
		got := written(t, write)
		if again := written(t, write); !bytes.Equal(got, again) {
			t.Errorf("%s: the second document differs", name)
		}
		var bom cdx.BOM
		if err := cdx.NewBOMDecoder(bytes.NewReader(got), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// The library would write the same: it has read every property, and no other order is more canonical than its
		// own.
		library := written(t, func(w io.Writer) error {
			return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(&bom,
				cdx.SpecVersion1_7)
		})
		if diff := gocmp.Diff(string(library), string(got)); diff != "" && name != "hostile" { // whose name is no UTF-8
			t.Errorf("%s: cyclonedx-go writes (-) another document (+):\n%s", name, diff)
		}
		if err := conform.Start(t).CycloneDX(string(got)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name != "hostile" { // the name is in it as it is
			golden(t, name+".cdx.json", withoutDigests(t, r, got))
		}
	}
}

// The serial number is that of one report.
func TestSerialNumber(t *testing.T) {
	a, b := serialNumber("a"), serialNumber("b")
	if a == b || a != serialNumber("a") || len(a) != len("urn:uuid:")+36 || a[len("urn:uuid:")+14] != '8' {
		t.Errorf("got %s and %s", a, b)
	}
}

// A statement is valid by the messages of in-toto and SLSA, and its byproduct is the JSON form of the report.
func TestInToto(t *testing.T) {
	for name, r := range documented(t) {
		got := written(t, r.InToto)
		if err := conform.Start(t).Provenance(string(got)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name != "hostile" {
			golden(t, name+".intoto.json", withoutDigests(t, r, got))
		}
		var s provenanceStatement
		if err := json.Unmarshal(got, &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Subject) != len(r.Result.Files) {
			t.Errorf("%s: %d subjects for %d files", name, len(s.Subject), len(r.Result.Files))
		}
	}
	r := verified(t, &verification.Result{Skipped: "of the weather"})
	r.Result.Files[0].SHA256 = ""
	if err := r.InToto(io.Discard); err == nil || !strings.Contains(err.Error(), "no digests") {
		t.Errorf("without digests: got %v", err)
	}
}

// The build type is the address of its documentation.
func TestBuildTypeIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/guide/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	_, anchor, _ := strings.Cut(BuildType, "docs/guide/evidence.md#")
	heading := "### Build type: compression v1\n"
	if got := strings.ToLower(strings.NewReplacer("### ", "", ":", "", " ", "-", "\n",
		"").Replace(heading)); got != anchor || !strings.Contains(string(page), heading) {
		t.Errorf("the page has no heading %q for %s", heading, anchor)
	}
}

// Formats have distinct names and files, and write every kind of report.
func TestFormats(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Formats() {
		if seen[f.Name] || seen[f.Suffix] || f.Doc == "" {
			t.Errorf("%+v", f)
		}
		seen[f.Name], seen[f.Suffix] = true, true
		if got, ok := FormatNamed(f.Name); !ok || got.Suffix != f.Suffix {
			t.Errorf("%s is not found", f.Name)
		}
		for name, r := range documented(t) {
			if err := f.Write(r, io.Discard, Card{}); err != nil {
				t.Errorf("%s of %s: %v", f.Name, name, err)
			}
		}
	}
	if _, ok := FormatNamed("pdf"); ok {
		t.Error("there is a format pdf")
	}
	if got := Formats()[0].Path("a/model.int8.onnx"); got != "a/model.int8.report.json" {
		t.Errorf("got %s", got)
	}
}

// A report with a member or element missing is an error, or is written in each format.
func TestIncompleteReports(t *testing.T) {
	var tree any
	r := documented(t)["plain"]
	r.Digest, r.Verification.Layers = "", r.Verification.Layers[:1]
	if err := json.Unmarshal(written(t, r.JSON), &tree); err != nil {
		t.Fatal(err)
	}
	n := 0
	without(tree, func(path string) {
		n++
		text, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if x := recover(); x != nil {
				t.Errorf("without %s: %v", path, x)
			}
		}()
		r, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, f := range Formats() {
			f.Write(r, io.Discard, Card{})
		}
	})
	if n < 100 {
		t.Errorf("%d members were left out", n)
	}
}

// without calls f for each member and each first element below a value, while it is left out.
func without(v any, f func(path string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			member := v[name]
			delete(v, name)
			f(name)
			v[name] = member
			if list, ok := member.([]any); ok && len(list) > 0 {
				v[name] = list[1:]
				f(name + "[0]")
				v[name] = []any{map[string]any{}}
				f(name + "[0].*")
				v[name] = member
			}
			without(member, func(path string) { f(name + "." + path) })
		}
	case []any:
		if len(v) > 0 {
			without(v[0], func(path string) { f("[0]." + path) })
		}
	}
}
