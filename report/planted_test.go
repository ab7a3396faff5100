package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

// planted is what a report from elsewhere may have in place of any text: markup of Markdown and HTML, ends of cells, code
// and folded parts, sequences of terminals, and marks that reverse text.
const planted = "x![i](http://x/i.png)<img src=x> | ``` `a` </details></code><script>alert(1)</script>\r\n\n# h\n- l\x1b[2J\u202e\u2066\x00--> end"

// full has a value in each field of a report. Texts are those of text, and numbers those of number.
func full(text string, number func() int64) *Report {
	r := &Report{}
	fill(reflect.ValueOf(r).Elem(), text, number)
	r.SchemaVersion = SchemaVersion
	return r
}

func fill(v reflect.Value, text string, number func() int64) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(number())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(number()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(number()) / 8)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, number)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), text, number)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text, number)
			}
		}
	}
}

// variants are full reports of each kind: parts of some are shown in place of parts of others.
func variants(text string, number func() int64) map[string]*Report {
	all := map[string]*Report{}
	for kind, edit := range map[string]func(*Report){
		"full": func(*Report) {},
		"run": func(r *Report) {
			r.Verification.Skipped, r.Verification.Unmeasured, r.Verification.Data.Generated = "", "", false
			for i := range r.Verification.Outputs {
				r.Verification.Outputs[i].Sizes = nil
			}
		},
		"sizes":     func(r *Report) { r.Verification.Skipped = "" },
		"ledger":    func(r *Report) { setStatus(r, pass.Changed) },
		"notes":     func(r *Report) { setStatus(r, pass.Noted) },
		"unchanged": func(r *Report) { setStatus(r, pass.Skipped) },
		"known codes": func(r *Report) {
			r.Weights[0].Reason.Code, r.Ledger[0].Reason.Code, r.Ledger[0].Status = pass.Bias, pass.FileLarger, pass.Noted.String()
		},
	} {
		r := full(text, number)
		r.Environment = &Environment{}
		fill(reflect.ValueOf(r.Environment).Elem(), text, number)
		edit(r)
		all[kind] = r
	}
	return all
}

func setStatus(r *Report, s pass.Status) {
	for i := range r.Ledger {
		r.Ledger[i].Status = s.String()
	}
	for i := range r.Weights {
		r.Weights[i].Changed = s == pass.Changed
	}
}

// textForms are the forms of a report that people read, and those of several.
func textForms(r *Report) map[string]func(io.Writer) error {
	rs := &Runs{}
	rs.Add(planted, r)
	rs.Add("b", r)
	x := &Index{Entries: []Entry{NewEntry(planted, planted, planted, r), {Model: planted, Status: "failed", Report: planted}}}
	forms := map[string]func(io.Writer) error{
		"runs.md": rs.Markdown, "runs.html": rs.HTML, "index.html": x.HTML,
	}
	for _, f := range Formats() {
		forms[f.Name] = func(w io.Writer) error { return f.Write(r, w, Card{}) }
	}
	return forms
}

var (
	codeOfMarkdown = regexp.MustCompile("(?s)<code>.*?</code>|`[^`\n]*`")
	activeMarkdown = regexp.MustCompile(`(^|[^\\])(!\[|<img|<script|</details|</code)`)
)

// No text of a report is markup in any form, whichever field it is in.
func TestTextOfReportsIsText(t *testing.T) {
	n := int64(0)
	number := func() int64 { n++; return n % 2 }
	for kind, r := range variants(planted, number) {
		for name, write := range textForms(r) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Logf("%s of %s: %v", name, kind, err)
				continue
			}
			text := b.String()
			if name == "json" || name == "cyclonedx" || name == "intoto" {
				if !json.Valid(b.Bytes()) {
					t.Errorf("%s of %s: not valid JSON", name, kind)
				}
				continue
			}
			for _, bad := range []string{"\x1b", "\u202e", "\u2066", "\x00", "\r"} {
				if i := strings.Index(text, bad); i >= 0 {
					t.Errorf("%s of %s: %q in %q", name, kind, bad, text[max(0, i-200):min(len(text), i+40)])
				}
			}
			bad := -1
			if strings.HasSuffix(name, "html") {
				bad = strings.Index(text, "<img src=x>")
				if i := strings.Index(text, "<script>alert"); i >= 0 {
					bad = i
				}
			} else {
				if rest, ok := strings.CutPrefix(text, "---\n"); ok { // YAML, which quotes its texts
					_, text, _ = strings.Cut(rest, "\n---\n")
				}
				text = withoutFences(text)
				for _, element := range []string{"<details><summary>", "</summary>", "</details>\n"} {
					text = strings.ReplaceAll(text, element, "\n")
				}
				text = codeOfMarkdown.ReplaceAllString(text, "")
				if at := activeMarkdown.FindStringIndex(text); at != nil {
					bad = at[0]
				}
				if i := strings.Index(text, "\n# h"); i >= 0 {
					bad = i
				}
			}
			if bad >= 0 {
				t.Errorf("%s of %s: markup in %q", name, kind, text[max(0, bad-200):min(len(text), bad+60)])
			}
		}
	}
}

// withoutFences leaves out blocks of code, which end with a fence of the length of the first one.
func withoutFences(text string) string {
	var kept []string
	fence := ""
	for _, line := range strings.Split(text, "\n") {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence != "" && line == fence:
			fence = ""
		case fence != "":
		case len(ticks) >= 3:
			fence = ticks
		default:
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// Numbers of a report from elsewhere may be anything: it is written in each form, or refused with an error.
func TestAnyNumbersOfReports(t *testing.T) {
	for _, x := range []int64{-1, 0, 3, math.MaxInt64, math.MinInt64} {
		for kind, r := range variants("x", func() int64 { return x }) {
			for name, write := range textForms(r) {
				func() {
					defer func() {
						if err := recover(); err != nil {
							t.Errorf("%s of %s with the number %d: %v", name, kind, x, err)
						}
					}()
					write(io.Discard)
				}()
			}
			r.Inconsistencies()
		}
	}
}

// Each figure has a range, and one that is out of it is found in whichever field it is.
func TestEachFigureHasARange(t *testing.T) {
	r := full("x", func() int64 { return 1 })
	r.Environment = &Environment{}
	found := 0
	each(reflect.ValueOf(r).Elem(), "", func(v reflect.Value, path string) {
		if strings.HasSuffix(path, ".shape") || strings.Contains(path, "config_values") || strings.HasSuffix(path, "version") {
			return
		}
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		if v.CanFloat() {
			v.SetFloat(math.NaN())
		} else {
			v.SetInt(math.MinInt64)
		}
		if lines := outOfRange(r); len(lines) != 1 {
			t.Errorf("%s: %q", path, lines)
		}
		v.Set(was)
		found++
	})
	if found < 150 {
		t.Errorf("%d figures", found)
	}
	if lines := outOfRange(r); len(lines) > 0 {
		t.Error(lines)
	}
	for _, c := range []struct {
		path string
		x    float64
	}{{"verification.outputs.errors.cosine", 3}, {"weights.error.cosine", -1.5}, {"verification.outputs.agreement", 1.01},
		{"verification.accuracy.after", -0.1}, {"training.agree.y", 2}, {"coverage.share", 2}, {"weights.sparsity", 7},
		{"verification.layers.errors.max_abs", -1}, {"verification.latency.after_seconds", -1}} {
		if bounds, ok := rangeOf(c.path); !ok || bounds.outside(c.x, c.path) == "" {
			t.Errorf("%s = %v is within its range", c.path, c.x)
		}
	}
	if lines := (&Environment{WallSeconds: -1}).Inconsistencies(); len(lines) != 1 {
		t.Error(lines)
	}
}

// each calls f for each number below a value that the JSON form has.
func each(v reflect.Value, path string, f func(v reflect.Value, path string)) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		each(v.Elem(), path, f)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			each(v.Index(i), path, f)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.IsExported() && name != "-" {
				each(v.Field(i), fmt.Sprint(path, ".", name), f)
			}
		}
	case v.CanInt() || v.CanFloat():
		f(v, path)
	}
}

// Figures of one comparison agree with each other.
func TestErrorsContradict(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	for want, e := range map[string]verification.Errors{
		"":           {SQNR: number(40.464), Cosine: number(0.999956143), Max: number(0.02), Elements: 512},
		"has no SQN": {SQNR: number(60), Cosine: number(0.9), Max: number(0.02), Elements: 512},
		"exact":      {Exact: true, Max: number(1), Elements: 3},
		"not finite": {NonFinite: 4, Elements: 3},
	} {
		if got := e.Contradiction(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}
