package registry

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	digest := "sha256:" + sum(nil)
	for text, want := range map[string]Reference{
		"oci://registry.example.com/a/b:1.0": {Scheme: "oci", Host: "registry.example.com", Name: "a/b", Tag: "1.0"},
		"oci://127.0.0.1:5000/m:x":           {Scheme: "oci", Host: "127.0.0.1:5000", Name: "m", Tag: "x"},
		"oci://[::1]:5000/m:x":               {Scheme: "oci", Host: "[::1]:5000", Name: "m", Tag: "x"},
		"oci://localhost/m@" + digest:        {Scheme: "oci", Host: "localhost", Name: "m", Digest: digest},
		"dir:models/mlp":                     {Scheme: "dir", Name: "models/mlp"},
		"dir:/a b":                           {Scheme: "dir", Name: "/a b"},
	} {
		if got := parse(t, text); got != want || got.String() != text || !IsReference(text) {
			t.Errorf("%s: got %+v, %s", text, got, got)
		}
	}
	for text, want := range map[string]string{
		"":                        "use oci://",
		"models/mlp":              "use oci://",
		"s3://bucket/x":           "use oci://",
		"oci:x":                   "use oci://HOST",
		"oci://":                  "use oci://HOST",
		"oci://host":              "use oci://HOST",
		"oci://host/m":            "the tag is missing",
		"oci://host/M:1":          "lower case",
		"oci://host/m:a b":        "use oci://HOST",
		"oci://host/../m:1":       "use oci://HOST",
		"oci://user:pw@host/m:1":  "use oci://HOST",
		"oci://host/m@sha256:abc": "use oci://HOST",
		"oci://host/m@sha512:" + strings.Repeat("0", 128): "digest algorithm sha512",
		"dir:": "the path of a folder is missing",
	} {
		if _, err := Parse(text); !isA[*ReferenceError](err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for _, path := range []string{"model.onnx", "/a:b/model.onnx", `C:\models`, "oci", "dir"} {
		if IsReference(path) {
			t.Errorf("%s is a path", path)
		}
	}
}
