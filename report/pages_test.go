package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const hostile = "a|b`c`\n<script>alert(1)</script> ![x](http://x) \u202e_*~\\|"

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", name, diff)
	}
}

func many() *ir.Model {
	ws := []*ir.Tensor{odd()}
	for i := range 12 {
		ws = append(ws, weight("layers."+string(rune('a'+i))+".weight", []int64{2, 2}, 0, 1.25, float32(i), -3))
	}
	return network(ws...)
}

func TestMarkdown(t *testing.T) {
	for name, j := range map[string]job{
		"one.md":      {model: network(odd()), methods: []*pass.Method{rounding}, in: Input{Errors: true}},
		"pipeline.md": {model: network(odd()), methods: []*pass.Method{halving, rounding, packing}, in: Input{Errors: true}},
		"many.md": {model: many(), methods: []*pass.Method{rounding},
			in: Input{Errors: true, Gates: []Limit{{"min-ratio", 0.5}, {"require-coverage", 0.99}}}},
		"none.md": {model: network(odd()), methods: []*pass.Method{rounding}, set: map[string]string{"skip": "*"}},
		"hostile.md": {model: network(weight(hostile, []int64{2, 2}, 0, 1, 2, 3.5)), methods: []*pass.Method{rounding},
			in: Input{Errors: true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := j.build(t)
			// Sizes of files follow the writer, which has tests of its own.
			pin(&r.Source, 4096)
			pin(&r.Result, 1024)
			r.Totals.FileBytes, r.Totals.Ratio, r.Digest = Change{4096, 1024}, 4, strings.Repeat("d", 64)
			for i := range r.Gates {
				half := r.Gates[i].Bound / 2
				r.Gates[i].Value = &half
			}
			var b bytes.Buffer
			if err := r.Markdown(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.Bytes())
		})
	}
}

func pin(s *Side, bytes int64) {
	s.Files[0].Bytes, s.Files[0].SHA256 = bytes, strings.Repeat("f", 64)
}

func TestHTMLIsSelfContained(t *testing.T) {
	page := html(t, (&job{model: many(), methods: []*pass.Method{halving, rounding, packing},
		in: Input{Errors: true, Environment: Observe(2)()}}).build(t))
	for _, bad := range []string{"http", "<script", "<link", "<img", "<iframe", "@import", "url(", "src=", "xlink",
		"ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if !strings.Contains(page, "prefers-color-scheme: dark") {
		t.Error("the page has no dark scheme")
	}
}

func TestHTMLDrawsEachChart(t *testing.T) {
	page := html(t, (&job{model: many(), methods: []*pass.Method{rounding}, in: Input{Errors: true}}).build(t))
	drawings := regexp.MustCompile(`(?s)<svg[^>]*role="img".*?</svg>`).FindAllString(page, -1)
	if want := 2 + 2*maxHistograms; len(drawings) != want {
		t.Fatalf("got %d charts, want %d: bytes by type, errors and histograms", len(drawings), want)
	}
	expected := [][]string{{"int8", "float"}, {"layers.a", "dB"}}
	for i, svg := range drawings[:2] {
		d := xml.NewDecoder(strings.NewReader(svg))
		var text strings.Builder
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("chart %d: %v", i, err)
			}
			if c, ok := token.(xml.CharData); ok {
				text.Write(c)
			}
		}
		for _, want := range expected[i] {
			if !strings.Contains(text.String(), want) {
				t.Errorf("chart %d does not say %q", i, want)
			}
		}
		if strings.Contains(svg, "#0") || !strings.Contains(svg, "var(--after)") {
			t.Errorf("chart %d has colours of its own", i)
		}
	}
}

func TestHTMLEscapesNames(t *testing.T) {
	w := weight("<script>\u202e", []int64{2, 2}, 0, 1, 2, 3.5)
	page := html(t, (&job{model: network(w), methods: []*pass.Method{rounding}, in: Input{Errors: true}}).build(t))
	if strings.Contains(page, "<script") || strings.Contains(page, "\u202e") {
		t.Error("a name got through as it is")
	}
	if n := strings.Count(page, "&lt;script&gt;"); n < 4 {
		t.Errorf("the name occurs %d times, want it in the table, the tree, the worst error and a chart", n)
	}
}

func TestChartsKeepTheEndsOfLongNames(t *testing.T) {
	long := "model.encoder." + strings.Repeat("block.", 30) + "query.weight"
	page := html(t, (&job{model: network(weight(long, []int64{2, 2}, 0, 1, 2, 3.5)), methods: []*pass.Method{rounding},
		in: Input{Errors: true}}).build(t))
	if !strings.Contains(page, "model.encoder.bl…") || !strings.Contains(page, "query.weight</text>") {
		t.Error("the short form of a long name does not show its ends")
	}
}

// html is the page of r without its own script and policy.
func html(t *testing.T, r *Report) string {
	t.Helper()
	return content(t, r.HTML)
}

// content is a page without its own script and policy, each of which it has once.
func content(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, own := range []string{"<script>" + pageScript + "</script>", `http-equiv="Content-Security-Policy"`} {
		if strings.Count(page, own) != 1 {
			t.Fatalf("the page has %d times %.40q, want 1", strings.Count(page, own), own)
		}
		page = strings.Replace(page, own, "", 1)
	}
	return page
}
