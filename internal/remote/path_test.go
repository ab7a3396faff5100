package remote

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestPaths(t *testing.T) {
	for _, c := range []struct{ path, dir, base, name, nextTo string }{
		{"s3://bucket/a/m.onnx", "s3://bucket/a/", "m.onnx", "bucket/a/m.onnx", "s3://bucket/a/m.data"},
		{"s3://bucket/m.onnx", "s3://bucket/", "m.onnx", "bucket/m.onnx", "s3://bucket/m.data"},
		{"https://host/a/m.onnx?sig=a%2Fb/c#x", "https://host/a/", "m.onnx", "host/a/m.onnx",
			"https://host/a/m.data?sig=a%2Fb/c#x"},
		{"https://host:8443/a/m.onnx", "https://host:8443/a/", "m.onnx", "host/a/m.onnx", "https://host:8443/a/m.data"},
		{"a/m.onnx", "a", "m.onnx", "a/m.onnx", filepath.Join("a", "m.data")},
	} {
		if got := Dir(c.path); got != c.dir {
			t.Errorf("the folder of %s is %s", c.path, got)
		}
		if got := Base(c.path); got != c.base {
			t.Errorf("the name of %s is %s", c.path, got)
		}
		if got := filepath.ToSlash(Name(c.path)); got != c.name {
			t.Errorf("files of %s are named after %s", c.path, got)
		}
		if got := NextTo(c.path, "m.data"); got != c.nextTo {
			t.Errorf("next to %s is %s", c.path, got)
		}
	}
	if got := Join("s3://bucket/a/", "b/c"); got != "s3://bucket/a/b/c" {
		t.Errorf("a path in a folder is %s", got)
	}
	if got := Shown(`get "https://h/m?X-Amz-Signature=abc&x=1": https://h/n#f, s3://b/k?v`); got !=
		`get "https://h/m": https://h/n s3://b/k?v` {
		t.Errorf("a message is %s", got)
	}
}

func TestInvalidURLs(t *testing.T) {
	for url, text := range map[string]string{
		"s3://":                   "use s3://BUCKET/KEY",
		"s3://bucket":             "use s3://BUCKET/KEY",
		"s3://bucket/":            "use s3://BUCKET/KEY",
		"http://models.example/m": "loopback addresses only",
		"https:///m":              "use https://HOST/PATH",
		"https://u:secret@h/":     "password is not supported",
		"https://h/%zz?secret":    "not valid",
		"gs://bucket/m":           "AWS_ENDPOINT_URL_S3",
		"az://container/m":        "shared access signature",
	} {
		_, err := Open(t.Context(), url)
		var e *PathError
		if !Is(url) || !errors.As(err, &e) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", url, err)
		}
		if url != "https://u:secret@h/" && err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a secret is shown: %v", err)
		}
	}
	for _, url := range []string{"https://h/m.onnx", "s3://"} {
		if CheckOutput(url) == nil {
			t.Errorf("%s can be written", url)
		}
	}
	if err := CheckOutput("s3://bucket/folder/"); err != nil {
		t.Error(err)
	}
	if Is("a/s3:/b") || Is("oci://h/r:1") || Is("m.onnx") {
		t.Error("a path or reference is taken for a URL")
	}
}
