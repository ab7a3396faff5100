package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// labelled opens three samples with these labels.
func labelled(t *testing.T, name, labels string) (*ir.Array, error) {
	t.Helper()
	dir := t.TempDir()
	data, path := filepath.Join(dir, "x.csv"), filepath.Join(dir, name)
	if err := os.WriteFile(data, []byte("a,b\n1,2\n3,4\n5,6\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(labels), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := (&samples{path: data}).labelFile(path)
	if err != nil {
		return nil, err
	}
	load, err := c.load([]int{2, 0, 1}, nil)
	if err != nil {
		return nil, err
	}
	return load()
}

func TestLabelsAsJSONLines(t *testing.T) {
	for text, want := range map[string]string{
		"3\n4\n-1\n":        "int64[3] [-1 3 4]",
		"0.5\n2\n1e3\n":     "double[3] [1000 0.5 2]",
		"\ufeff1\n\n2\r\n3": "int64[3] [3 1 2]",
		"[1,2]\n[]\n[3]":    "int64[3,2] [3 -100 1 2 -100 -100]",
		"[[0,0,2,2,1]]\n[]\n[[1,1,2,2.5,0],[3,3,4,4,2]]": "double[3,2,5] [1 1 2 2.5 0 3 3 4 4 2 0 0 2 2 1 -100 " +
			"-100 -100 -100 -100 -100 -100 -100 -100 -100 -100 -100 -100 -100 -100]",
		"\"a\"\n\"\"\n\"äö\"": "string[3] [äö a ]",
		`{"label": "x", "id": 7}` + "\n\"y\"\n" + `{"label": "z"}`: "string[3] [z x y]",
	} {
		for _, name := range []string{"labels.jsonl", "labels.NDJSON"} {
			a, err := labelled(t, name, text)
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			var values any = a.Text
			switch a.DType {
			case ir.Int64:
				values = ir.View[int64](a)
			case ir.Double:
				values = ir.View[float64](a)
			}
			if got := fmt.Sprint(a, values); got != strings.Replace(want, "] [", "][", 1) && got != want {
				t.Errorf("%q: got %s, want %s", text, got, want)
			}
		}
	}
}

func TestInvalidLabelsAsJSONLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "no labels",
		"1\n\"a\"":                  "line 2: a label of another kind",
		"1\n[1]":                    "line 2: a label of another kind",
		"[[1,2],[3]]":               "line 1: the lists of a label must have",
		"[[1,2]]\n[[1,2,3]]":        "rows of",
		"[[1],2]":                   "line 1: the lists of a label must have",
		"{\"a\": 1}":                "line 1: an object without \"label\"",
		"true":                      "line 1: a label is a text, a number",
		"[1, null]":                 "line 1: a label is a text, a number",
		"1 2":                       "line 1: not a JSON value",
		"1\n{":                      "line 2: not a JSON value",
		"[]\n1":                     "line 2: a label of another kind",
		"[]\n[[1]]\n[1]":            "line 3: a label of another kind",
		"[]\n[]":                    "all labels are empty",
		"\"a\\u0000\"":              "a text with a character 0",
		strings.Repeat(" ", 17<<20): "a line of more than 16 MiB",
		"[" + strings.TrimSuffix(strings.Repeat("1,", 1<<20), ",") + "]" +
			strings.Repeat("\n[]", 200): "labels of up to 1048576 numbers take more than 1 GiB",
	} {
		if a, err := labelled(t, "labels.jsonl", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, %v, want %q", text, a, err, want)
		}
	}
	if _, err := labelled(t, "labels.txt", "1\n"); err == nil || !strings.Contains(err.Error(), ".jsonl") {
		t.Errorf("got %v", err)
	}
	if !isJSONLines("a.jsonl.gz") {
		t.Error("compressed labels are not recognized")
	}
}
