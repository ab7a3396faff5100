package mcompress_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A program that imports the library links neither the clients of registries and object storage nor what only the
// program mcompress needs: they are in packages of their own, which it may import. Package registry is linked, as
// requests push and promote.
func TestWhatTheLibraryLinks(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	for _, module := range []string{
		"github.com/minio/minio-go", "oras.land/oras-go", "github.com/CycloneDX", "github.com/urfave/cli",
		"github.com/vbauerster/mpb", "github.com/mcompress/mcompress/registry/oci",
		"github.com/mcompress/mcompress/registry/mlflow", "github.com/mcompress/mcompress/s3",
	} {
		if i := slices.IndexFunc(linked, func(name string) bool {
			return name == module || strings.HasPrefix(name, module+"/")
		}); i >= 0 {
			t.Errorf("the library links %s", linked[i])
		}
	}
	if len(linked) < 100 {
		t.Errorf("%d packages: go list has no list", len(linked))
	}
}
