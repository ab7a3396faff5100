package lint

import (
	"os"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

func TestTreeKeepsTheRules(t *testing.T) {
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	names, err := conform.Tracked(root)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Read(os.DirFS(root), names)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Rules() {
		for _, p := range r.Check(tree) {
			t.Errorf("%s: %s", r.Name, p)
		}
	}
}
