package lint

import (
	"flag"
	"os"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

var place = flag.String("dialect", "", "file or folder (. for all) whose findings TestDialectOfAPlace lists")

// TestDialectOfAPlace lists the findings in one folder: go test ./internal/dev/lint -run Dialect -dialect=quantize.
func TestDialectOfAPlace(t *testing.T) {
	if *place == "" {
		t.Skip("no -dialect")
	}
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Read(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	found := dialectIn(tree, *place)
	for _, p := range found {
		t.Error(p)
	}
	t.Logf("%d findings in %s", len(found), *place)
}
