package redact

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"a/path?x#y":                              "a/path?x#y",
		"https://h/m.onnx?sig=secret and more":    "https://h/m.onnx and more",
		"https://h/m.onnx#secret":                 "https://h/m.onnx",
		`"https://h/m.onnx?sig=secret"`:           `"https://h/m.onnx"`,
		"oci://user:secret@host:5000/m/x:1":       "oci://…@host:5000/m/x:1",
		"oci://host:5000/m/x@sha256:0123":         "oci://host:5000/m/x@sha256:0123",
		"oci://host/m/x@sha256:0123":              "oci://host/m/x@sha256:0123",
		"mlflow://host/m@champion":                "mlflow://host/m@champion",
		"mlflow://host:80/prefix/m@champion":      "mlflow://host:80/prefix/m@champion",
		"mlflow://secret@host/m":                  "mlflow://…@host/m",
		"s3://key:se/cr@et@bucket/x and s3://b/y": "s3://…@bucket/x and s3://b/y",
		"https://u:secret@h/m?sig=secret":         "https://…@h/m",
		"mlflow://[::1]:5000/m@champion":          "mlflow://[::1]:5000/m@champion",
		"oci://[fe80::1%25en0]/m@sha256:0123":     "oci://[fe80::1%25en0]/m@sha256:0123",
		"oci://user:secret@[::1]:5000/m":          "oci://…@[::1]:5000/m",
		"oci://[::1]:secret@host/m":               "oci://…@host/m",
		"oci://:secret@host/m":                    "oci://…@host/m",
	} {
		if got := Text(text); got != want || strings.Contains(got, "secret") {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
