package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
)

func TestTargetIsShown(t *testing.T) {
	for _, c := range []struct {
		choices []pass.Choice
		want    string
	}{
		{[]pass.Choice{}, "No option of these methods depends on the target."},
		{[]pass.Choice{{Method: "dynamic-int8", Option: "weight-type", Value: "uint8", Why: "others saturate"}},
			"dynamic-int8: weight-type uint8, because others saturate"},
		{[]pass.Choice{{Method: "dynamic-int8", Option: "reduce-range", Value: "true", Given: true, Why: "others saturate"}},
			"dynamic-int8: reduce-range true was given and overrides the target: others saturate"},
	} {
		aimed := &pass.Target{Name: "cpu-avx2", CPU: "x86 with AVX2",
			Runtimes: []pass.Runtime{{Name: "qnn", Title: "QNN", Untested: "no device"}}, Choices: c.choices}
		r := (&job{model: network(odd()), methods: []*pass.Method{rounding}, in: Input{Target: aimed}}).build(t)
		valid(t, r)
		var md bytes.Buffer
		if err := r.Markdown(&md); err != nil {
			t.Fatal(err)
		}
		page := html(t, r)
		for _, want := range []string{"Target: cpu-avx2 (QNN, untested: no device; x86 with AVX2)", c.want} {
			if !strings.Contains(md.String(), want) || !strings.Contains(page, want) {
				t.Errorf("%q is missing in\n%s", want, md.String())
			}
		}
	}
}
