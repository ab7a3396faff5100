package bounded

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

type row struct {
	Name  string
	Shape []int64
	Note  *struct{ A, B [8]int64 } `json:"note"`
	More  map[string]any           `json:"more"`
	Any   any
	Raw   json.RawMessage
}

type document struct {
	*embedded
	Rows   []row  `json:"rows"`
	Hidden []row  `json:"-"`
	Bytes  []byte `json:"bytes"`
}

type embedded struct{ Inner []row }

// Decoders take hundreds of bytes of memory for a few of text; no more than the limit is taken, and none for fields that
// are not decoded.
func TestJSONIsBounded(t *testing.T) {
	SetMemory(minMemory)
	defer SetMemory(0)
	list := func(item string) string { return "[" + strings.Repeat(item+",", 1<<20) + item + "]" }
	names := `{"` + strings.Repeat(`a":0,"`, 1<<20) + `a":0}`
	for _, text := range []string{
		`{"rows":` + list("{}") + `}`, `{"ROWS":` + list("{}") + `}`, `{"\u0072ows":` + list("{}") + `}`,
		`{"rowſ":` + list("{}") + `}`, `{"Inner":` + list("{}") + `}`, ` { "rows" : ` + list(`{"note":{}}`) + `}`,
		`{"rows":[{"shape":` + list("0") + `,"any":` + list(`""`) + `}]}`, `{"rows":[{"more":` + names + `}]}`,
		`{"rows":[{"any":` + list("[]") + `}]}`, `{"rows":` + list("null") + `}`,
	} {
		d := &document{embedded: &embedded{}}
		var limit *Error
		if err := JSON([]byte(text), d); !errors.As(err, &limit) {
			t.Errorf("%.40s: got %v, want an error of the limit", text, err)
		}
		if d.Rows != nil || d.Inner != nil {
			t.Errorf("%.40s: something was decoded", text)
		}
	}
	for _, text := range []string{
		`{"others":` + list("{}") + `}`, `{"-":` + list("{}") + `,"Hidden":` + list("{}") + `}`,
		`{"rows":[{"raw":` + list("{}") + `}]}`, `{"bytes":"` + strings.Repeat("QUFB", 1<<20) + `"}`, list("{}"),
	} {
		var limit *Error
		if err := JSON([]byte(text), &document{}); errors.As(err, &limit) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

func TestJSONDepth(t *testing.T) {
	for depth, want := range map[int]bool{maxDepth: true, maxDepth + 1: false, 1 << 20: false} {
		for _, pair := range []string{"[]", "{}"} {
			open := pair[:1]
			if pair == "{}" {
				open = `{"a":`
			}
			text := strings.Repeat(open, depth-1) + pair + strings.Repeat(pair[1:], depth-1)
			var v any
			if err := JSON([]byte(text), &v); (err == nil) != want {
				t.Errorf("%d levels of %s: %v", depth, pair, err)
			}
		}
	}
}

// The charge is no less than what a decoder allocates, and not much more for texts as programs write them.
func TestChargeIsThatOfTheDecoder(t *testing.T) {
	for _, text := range []string{
		`{"rows":[` + strings.Repeat(`{"name":"encoder.layer.0.output","shape":[768,768],"more":{"a":1,"b":"x"}},`, 10000) + `{}]}`,
		`{"rows":[` + strings.Repeat(`{},`, 100000) + `{}]}`,
		`{"rows":[{"any":[` + strings.Repeat(`{"a":1},[],"x",`, 30000) + `0]}]}`,
		`{"rows":[{"any":[` + strings.Repeat(`0,`, 300000) + `0]}]}`,
	} {
		w := &walker{text: []byte(text), budget: &Budget{1 << 40}}
		var d document
		if err := w.value(formOf(&d)); err != nil {
			t.Fatal(err)
		}
		charged := int64(1<<40) - w.budget.left
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if err := json.Unmarshal(w.text, &d); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		live := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		if live > charged || charged > 5*live {
			t.Errorf("%.30s: %d bytes are charged, %d are live", text, charged, live)
		}
		runtime.KeepAlive(d)
	}
}

// What is not valid JSON is the decoder's error, and ends.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{"", "{", "[", `{"`, `{"rows":[{"any":[1,"a\"`, `"\`, `{]`, `[}`, "nul", "{,:}", `{"a" 1}`, "]", "\x00", `{"rows":[{}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, want document
		err, wantErr := JSON(text, &got), json.Unmarshal(text, &want)
		var limit *Error
		if (err == nil) != (wantErr == nil) && !errors.As(err, &limit) {
			t.Errorf("%q: got %v, want %v", text, err, wantErr)
		}
		var a, b any
		_ = StrictJSON(text, &a)
		_ = Members(strings.NewReader(string(text)), map[string]any{"rows": &b})
	})
}

func TestStrictJSON(t *testing.T) {
	var v struct{ A int }
	for text, want := range map[string]bool{`{"a":1}`: true, "{\"a\":1}\n": true, `{"b":1}`: false, `{"a":1}{}`: false, `{"a":1} x`: false} {
		if err := StrictJSON([]byte(text), &v); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestMembers(t *testing.T) {
	var a struct{ X int }
	var b string
	text := `{"skip":{"a":[1,"}",{"b":"\"]"}]},"\u0061" : {"x":7} ,"n":-1.5e3,"t":true,"b":"u"}`
	if err := Members(strings.NewReader(text), map[string]any{"a": &a, "b": &b}); err != nil || a.X != 7 || b != "u" {
		t.Errorf("got %v, %q, %v", a, b, err)
	}
	for _, text := range []string{"", "[]", "{", `{"a"`, `{"a":`, `{"a":{"x":7}`, `{"a":{"x":7,}}`, `{a:1}`, `{"s":"`} {
		if err := Members(strings.NewReader(text), map[string]any{"a": &a, "b": &b}); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	large := `{"b":"` + strings.Repeat("x", maxMember) + `"}`
	if err := Members(strings.NewReader(large), map[string]any{"b": &b}); err == nil {
		t.Error("a member of any size is decoded")
	}
}

// The time of the parser of YAML is quadratic in some texts.
func TestYAMLTime(t *testing.T) {
	for _, unit := range []string{"-\n", "---\n...\n", "#\n", "? a\n", "a:\n", "!a ", "[", "{", "- ", "'", "|\n", "%"} {
		start := time.Now()
		var v any
		_ = YAML([]byte(strings.Repeat(unit, MaxYAML/len(unit))), &v)
		_ = YAML([]byte(strings.Repeat(unit, maxMarks/2/len(unit))), &v)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%q: %v", unit, took)
		}
	}
	var head struct {
		Base string `yaml:"base_model"`
	}
	if err := YAML([]byte("base_model: a/b\ntags: [x]\n"), &head); err != nil || head.Base != "a/b" {
		t.Errorf("got %q, %v", head.Base, err)
	}
	if err := StrictYAML([]byte("base_model: a/b\ntags: [x]\n"), &head); err == nil {
		t.Error("an unknown field is no error")
	}
}

func TestXML(t *testing.T) {
	var v struct{ Key []string }
	if err := XML([]byte("<r><Key>a</Key><Key>b</Key></r>"), &v); err != nil || len(v.Key) != 2 {
		t.Errorf("got %v, %v", v, err)
	}
	for _, text := range []string{"<r>" + strings.Repeat("<Key/>", 2<<20) + "</r>", strings.Repeat("<a>", 200) + strings.Repeat("</a>", 200)} {
		var limit *Error
		if err := XML([]byte(text), &v); !errors.As(err, &limit) {
			t.Errorf("%.20s: got %v", text, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	for pattern, want := range map[string]bool{
		"a/**/*.onnx": true, "{a,b}{c,d}": true, strings.Repeat("{a,b}", 10): true, strings.Repeat("{a,b}", 11): false,
		"{" + strings.Repeat("a,", 1023) + "a}": true, "{" + strings.Repeat("a,", 1024) + "a}": false,
		strings.Repeat("{a,", 30) + strings.Repeat("}", 30): false, strings.Repeat("**/", 5): false,
		strings.Repeat(`\{a,b\}`, 30): true, "}}{{": true, "": true, `\`: true,
	} {
		if err := CheckPattern(pattern); (err == nil) != want {
			t.Errorf("%.30s: %v", pattern, err)
		}
	}
}

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]bool{4: false, 5: true, 1 << 62: true} {
		for _, read := range []func(string, int64) ([]byte, error){ReadFile, ReadRegular} {
			text, err := read(path, limit)
			if (err == nil) != want || want && string(text) != "12345" {
				t.Errorf("limit %d: got %q, %v", limit, text, err)
			}
		}
	}
	var limit *Error
	if _, err := ReadRegular(t.TempDir(), 1); !errors.As(err, &limit) {
		t.Errorf("a folder: got %v", err)
	}
	if _, err := ReadRegular(path+"x", 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
}
