package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcompress/mcompress/pass"
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../docs/report-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valid holds r's JSON form against the schema.
func valid(t *testing.T, r *Report) {
	t.Helper()
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(doc); err != nil {
		t.Error(err)
	}
}

func TestReportsKeepTheSchema(t *testing.T) {
	gates := []Limit{{"min-ratio", 2}}
	for name, j := range map[string]job{
		"one step":  {methods: []*pass.Method{rounding}, in: Input{Errors: true, Environment: Observe(1)(), Gates: gates}},
		"pipeline":  {methods: []*pass.Method{halving, rounding, packing}, in: Input{Errors: true}},
		"unread":    {methods: []*pass.Method{rounding}},
		"none":      {methods: []*pass.Method{rounding}, set: map[string]string{"skip": "*"}},
		"teacher":   {methods: []*pass.Method{rounding}, in: Input{Errors: true}},
		"two files": {methods: []*pass.Method{halving, rounding}, in: Input{Errors: true}},
	} {
		t.Run(name, func(t *testing.T) {
			j.model = network(odd())
			in := j.input(t)
			if name == "two files" {
				in.Rows, in.Recipe = nil, nil
			}
			if name == "teacher" {
				teacher := Model{Path: "teacher.onnx", IR: network(odd()), Files: []File{{Name: "teacher.onnx", Bytes: 9000}}}
				in.Teachers, in.Reference = []Model{teacher}, &teacher
			}
			r, err := Build(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			valid(t, r)
			if name == "teacher" && (r.Totals.FileBytes.Before != 9000 || r.title() != "teacher.onnx → "+main(r.Result) ||
				len(r.Inconsistencies()) > 0) {
				t.Errorf("%d bytes before, title %q, inconsistent: %q", r.Totals.FileBytes.Before, r.title(), r.Inconsistencies())
			}
		})
	}
}

func TestSchemaRefuses(t *testing.T) {
	r := (&job{model: network(odd()), methods: []*pass.Method{rounding}, in: Input{Errors: true}}).build(t)
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	s := schema(t)
	for _, c := range []struct{ old, new string }{
		{`"schema_version": 3`, `"schema_version": 2`},
		{`"code": "shape"`, `"code": "mood"`},
		{`"status": "changed"`, `"status": "forgotten"`},
		{`"coverage": {`, `"coverage": {"mood": 1,`},
		{`"ratio": `, `"ratoi": `},
		{`"exact": false`, `"exact": null`},
		{`"digest": "`, `"digest": "x`},
	} {
		text := strings.Replace(b.String(), c.old, c.new, 1)
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil || text == b.String() {
			t.Fatalf("%s: %v", c.new, err)
		}
		if s.Validate(doc) == nil {
			t.Errorf("the schema takes %s", c.new)
		}
	}
}
