package mlflow

import (
	"testing"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

// liar returns a server that lies in answers at the addresses that contain a text, and a reference to a model there.
func liar(t testing.TB, name, about string, fields int) (*registrytest.Liar, registry.Reference) {
	t.Helper()
	honest := newTracking(t)
	if _, err := registry.Push(t.Context(), honest.ref(t, "m@a"), registrytest.Fixture(t, "mlp"), registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MLFLOW_TRACKING_TOKEN", registrytest.Secret)
	ref := func(host string) registry.Reference { return registrytest.Parse(t, "mlflow://"+host+"/"+name) }
	l := registrytest.NewLiar(t, registrytest.Record(t, honest.host, ref), about, fields)
	return l, ref(l.Host)
}

// Whatever a server answers, a list and a pull have an error, or the files as listed.
func TestLiesOfMLflow(t *testing.T) {
	for name, about := range map[string]string{"m@a": "", "m": "model-versions/search"} { // one version, and the latest of a list
		l, ref := liar(t, name, about, 60)
		l.Check(t, ref)
	}
}

func FuzzAnswers(f *testing.F) {
	l, ref := liar(f, "m", "", 0)
	l.Fuzz(f, ref)
}

func FuzzReference(f *testing.F) {
	registrytest.FuzzReference(f, "mlflow://host:80/prefix/name@champion", "mlflow://host/m@v1", "mlflow://user@host/a")
}
