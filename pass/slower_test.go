package pass_test

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

func TestSlower(t *testing.T) {
	for _, c := range []struct {
		target string
		step   pass.Options
		want   string // the runtime; empty for none
	}{
		{"tract", quantize.DynamicInt8{}, "tract"},
		{"ort", quantize.DynamicInt8{}, ""},
		{"ort,tract,web", quantize.DynamicInt8{}, "tract"},
		{"ort-1.21", quantize.Float16{Compute: "float16"}, "ort-1.20"},
		{"ort-1.21", quantize.Float16{}, ""},
		{"ort-1.25", quantize.Float16{Compute: "float16"}, ""},
	} {
		target, err := pass.ParseTarget(c.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := target.Slower(c.step); (got == "") != (c.want == "") ||
			!strings.Contains(got, " in "+c.want) && c.want != "" {
			t.Errorf("%s for %s: got %q, want %q", c.step.Method().Name, c.target, got, c.want)
		}
	}
}
