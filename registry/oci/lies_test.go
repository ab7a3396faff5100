package oci

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

// liar returns a registry that lies about a model, and a reference to that.
func liar(t testing.TB, fields int) (*registrytest.Liar, registry.Reference) {
	t.Helper()
	honest := withReferrers(t)
	if _, err := registry.Push(t.Context(), honest.ref(t, "models/m:1"), registrytest.Fixture(t, "mlp"), registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	ref := func(host string) registry.Reference { return registrytest.Parse(t, "oci://"+host+"/models/m:1") }
	l := registrytest.NewLiar(t, registrytest.Record(t, honest.host, ref), "", fields)
	config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, l.Host, base64.StdEncoding.EncodeToString([]byte("user:"+registrytest.Secret)))
	t.Setenv("DOCKER_CONFIG", registrytest.Written(t, map[string]string{"config.json": config}))
	return l, ref(l.Host)
}

// Whatever a registry answers, a list and a pull have an error, or the files as listed.
func TestLiesOfOCI(t *testing.T) {
	l, ref := liar(t, 100)
	l.Check(t, ref)
}

func FuzzAnswers(f *testing.F) {
	l, ref := liar(f, 0)
	l.Fuzz(f, ref)
}

func FuzzReference(f *testing.F) {
	registrytest.FuzzReference(f, "oci://host:5000/a/b:tag", "oci://host/a@sha256:"+registrytest.Sum(nil), "oci://user:password@host/a:1")
}
