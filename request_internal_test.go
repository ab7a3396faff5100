package mcompress

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/registry"
)

// leaves are the paths of the fields of a struct that are no structs, with a function that gives each a value.
func leaves(prefix string, v reflect.Value, each func(path string, set func())) {
	for i := range v.NumField() {
		f, field := v.Type().Field(i), v.Field(i)
		if !f.IsExported() {
			continue
		}
		path := prefix + f.Name
		if field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct {
			of := reflect.New(field.Type().Elem())
			leaves(path+".", of.Elem(), func(p string, set func()) {
				each(p, func() { set(); field.Set(of) })
			})
			continue
		}
		if field.Kind() == reflect.Struct {
			leaves(path+".", field, each)
			continue
		}
		each(path, func() { field.Set(valueOf(field.Type())) })
	}
}

// valueOf is a value of the type that is not zero.
func valueOf(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.String:
		v.SetString("seven")
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(valueOf(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
		v.Index(0).Set(valueOf(t.Elem()))
	case reflect.Struct:
		v.Field(0).Set(valueOf(v.Field(0).Type()))
	}
	return v
}

// isFunction reports whether a field has functions or steps, which have a form of their own.
func isFunction(path string) bool {
	return strings.HasPrefix(path, "Events.") ||
		slices.Contains([]string{"Steps", "Alternative", "Verification.Evaluator"}, path)
}

// TestEachFieldIsInTheDigest requires each field to change the options that the digest of a request has, unless it is
// among those that change no result.
func TestEachFieldIsInTheDigest(t *testing.T) {
	count := 0
	leaves("", reflect.ValueOf(&Request{}).Elem(), func(path string, _ func()) {
		neutral := slices.ContainsFunc(neutralFields, func(n string) bool {
			return path == n || strings.HasPrefix(path, n+".")
		})
		if neutral || isFunction(path) {
			return
		}
		count++
		var r Request
		leaves("", reflect.ValueOf(&r).Elem(), func(p string, set func()) {
			if p == path {
				set()
			}
		})
		o := r.options()
		if len(o) != 1 || o[0].Name != path {
			t.Errorf("%s: the options are %v", path, o)
		}
	})
	if count < 30 {
		t.Errorf("%d fields", count)
	}
	for _, n := range neutralFields {
		found := false
		leaves("", reflect.ValueOf(&Request{}).Elem(),
			func(path string, _ func()) { found = found || path == n || strings.HasPrefix(path, n+".") })
		if !found {
			t.Errorf("there is no field %s", n)
		}
	}
}

// TestRequestsAreStored writes and reads requests in each of which one field has a value, and one with steps.
func TestRequestsAreStored(t *testing.T) {
	leaves("", reflect.ValueOf(&Request{}).Elem(), func(path string, _ func()) {
		if isFunction(path) {
			return
		}
		var r, back Request
		leaves("", reflect.ValueOf(&r).Elem(), func(p string, set func()) {
			if p == path {
				set()
			}
		})
		text, err := json.Marshal(r)
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := cmp.Diff(r, back, cmp.AllowUnexported(Request{}), cmp.Comparer(func(a, b Evaluator) bool {
			return a == nil && b == nil
		}), cmp.Comparer(func(a, b Events) bool { return true })); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	})
	r := Request{Models: []string{"a.onnx"}, Steps: []Step{quantize.DynamicInt8{ReduceRange: true}}}
	var back Request
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || len(back.Steps) != 1 || !back.Steps[0].(*quantize.DynamicInt8).ReduceRange {
		t.Errorf("%s is %+v, %v", text, back.Steps, err)
	}
	if err := json.Unmarshal([]byte(`{"Modles": ["a.onnx"]}`), &back); err == nil {
		t.Error("an unknown field is no error")
	}
}

// TestFieldErrorsNameFields names the fields of an error in Go and as a program does.
func TestFieldErrorsNameFields(t *testing.T) {
	err := fieldErrorf("{Gates.min-sqnr} requires {Verification.Data.Path}, not {other}: %w", cmpError{})
	field, _ := err.(*FieldError)
	if got := err.Error(); got != "Gates.min-sqnr requires Verification.Data.Path, not {other}: cause" {
		t.Errorf("got %q", got)
	}
	if got := field.Text(func(f string) string {
		return "<" + f + ">"
	}); got != "<Gates.min-sqnr> requires <Verification.Data.Path>, not {other}: cause" {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(field.Fields(), []string{"Gates.min-sqnr", "Verification.Data.Path"}) ||
		field.Unwrap() != (cmpError{}) {
		t.Errorf("got %q, %v", field.Fields(), field.Unwrap())
	}
}

// A warning of the library names a field, and not the flag of the program.
func TestWarningsNameFields(t *testing.T) {
	var field *FieldError
	err := Reports{}.Lacking(registry.Reference{Scheme: "hf"})
	if !errors.As(err, &field) || !slices.Equal(field.Fields(), []string{"Reports.BaseModel"}) ||
		strings.Contains(err.Error(), "--") {
		t.Errorf("got %v", err)
	}
	for _, err := range []error{Reports{BaseModel: "none"}.Lacking(registry.Reference{Scheme: "hf"}),
		Reports{}.Lacking(registry.Reference{Scheme: "oci"})} {
		if err != nil {
			t.Errorf("got %v", err)
		}
	}
}

type cmpError struct{}

func (cmpError) Error() string { return "cause" }
