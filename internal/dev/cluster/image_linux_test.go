package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// imageUser is the user and the group of the image of a release.
const imageUser = 65532

// buildImage builds the program as for the image of a release, and returns a folder with the files of the image.
func buildImage(t *testing.T) string {
	t.Helper()
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	image := t.TempDir()
	program := exec.Command("go", "build", "-tags", "noort",
		"-ldflags", "-s -w", "-o", filepath.Join(image, "usr", "bin", "mcompress"), "./cmd/mcompress")
	program.Dir, program.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := program.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, folder := range []string{"etc", "tmp", "data"} {
		if err := os.Mkdir(filepath.Join(image, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	passwd := []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")
	if err := os.WriteFile(filepath.Join(image, "etc", "passwd"), passwd, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(image, "tmp"), os.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	return image
}
