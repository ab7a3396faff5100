package oci

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

func TestParse(t *testing.T) {
	digest := "sha256:" + registrytest.Sum(nil)
	for text, want := range map[string]registry.Reference{
		"oci://registry.example.com/a/b:1.0": {Scheme: "oci", Host: "registry.example.com", Name: "a/b", Tag: "1.0"},
		"oci://127.0.0.1:5000/m:x":           {Scheme: "oci", Host: "127.0.0.1:5000", Name: "m", Tag: "x"},
		"oci://[::1]:5000/m:x":               {Scheme: "oci", Host: "[::1]:5000", Name: "m", Tag: "x"},
		"oci://localhost/m@" + digest:        {Scheme: "oci", Host: "localhost", Name: "m", Digest: digest},
	} {
		if got := registrytest.Parse(t, text); got != want || got.String() != text || !registry.IsReference(text) {
			t.Errorf("%s: got %+v, %s", text, got, got)
		}
	}
	for text, want := range map[string]string{
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
	} {
		_, err := registry.Parse(text)
		if !registrytest.IsA[*registry.ReferenceError](err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestKind(t *testing.T) {
	registrytest.Kind{
		Scheme: scheme, Artifact: registrytest.Complete(t), Place: withReferrers(t).ref(t, "models/m:1"), Tags: true,
	}.Test(t)
}
