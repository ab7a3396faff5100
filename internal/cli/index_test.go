package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	_ "github.com/mcompress/mcompress/registry/oci"
	"github.com/mcompress/mcompress/report"
)

// A report belongs to the model of the longest name in its folder; in one folder for all reports, to the only model of that name.
func TestModelOfReport(t *testing.T) {
	rs := Reports{Models: []string{"abs/x.onnx", "a/m.onnx", "a/m.v2.onnx", "./b/m.onnx", "/abs/x.y/m.onnx", "single.mcz", "s3://bucket/in/m.onnx", "oci://host/models/m:1.0"}}
	for _, c := range []struct {
		report, want string
		flat         bool
	}{
		{"a/m.dynamic-int8.report.json", "a/m.onnx", false},
		{"a/m.dynamic-int8.rejected.report.json", "a/m.onnx", false},
		{"a/m.v2.dynamic-int8.report.json", "a/m.v2.onnx", false},
		{"a/m.v3.report.json", "a/m.onnx", false},
		{"a/n.int8.report.json", "", false},
		{"m.int8.report.json", "", false},
		{"b/m.int8.report.json", "./b/m.onnx", false},
		{"abs/x.y/m.int8.report.json", "/abs/x.y/m.onnx", false},
		{"abs/x.z/m.int8.report.json", "", false},
		{"single.int8.report.json", "single.mcz", false},
		{"bucket/in/m.int8.report.json", "s3://bucket/in/m.onnx", false},
		{"m-1.0.int8.report.json", "oci://host/models/m:1.0", true},
		{"models/m-1.0.int8.report.json", "oci://host/models/m:1.0", false},
		{"m.v2.int8.report.json", "a/m.v2.onnx", true},
		{"m.int8.report.json", "", true}, // of several
	} {
		l, err := rs.models(c.flat)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.of(c.report); got != c.want {
			t.Errorf("%s: %q, want %q", c.report, got, c.want)
		}
	}
}

// The last line of a model counts, also that of a later log; lines of stderr and of other events are left out.
func TestLogHasTheLastLines(t *testing.T) {
	var l Log
	for _, text := range []string{
		"mcompress: quantize: a: no such file\n{\"event\":\"start\"}\n{\"event\":\"model\",\"model\":\"a\",\"result\":\"failed\",\"exit_code\":1,\"error\":\"full\"}\n{\"event\":\"progress\",\"model\":\"b\"}\n{\"event\":\"mod",
		`{"event":"model","model":"c","result":"rejected"}` + "\n" + `{"event":"model","model":"a","result":"written"}`,
	} {
		if err := l.Read(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"a", "c"}; !slices.Equal(l.Models, want) || l.last["a"].Result != "written" || l.last["c"].Result != "rejected" {
		t.Errorf("models %q, want %q; %+v", l.Models, want, l.last)
	}
}

// The index is the same however many reports are read at a time.
func TestReportsAreReadInParallel(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("m%02d.report.json", i)), []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var want *report.Index
	for _, workers := range []int{1, 8} {
		got, err := (&Reports{Folder: dir, Index: dir, Workers: workers}).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Entries) != 20 || got.Entries[7].Status != report.Invalid || got.Entries[7].Report != "m07.report.json" {
			t.Errorf("%d workers: %d entries, %+v", workers, len(got.Entries), got.Entries[7])
		}
		if want != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers change the index", workers)
		}
		want = got
	}
}
