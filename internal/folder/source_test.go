package folder

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Links are followed to files of the folder and to the blobs of the cache that has the folder, and nowhere else.
func TestLinksOfAFolder(t *testing.T) {
	const secret = "kept from others"
	for name, c := range map[string]struct {
		folder string // of the model
		link   string // vocab.txt there
		blobs  string // what models--a--b/blobs is a link to; empty for a folder
		copied bool
	}{
		"within":                          {"model", "other.txt", "", true},
		"elsewhere":                       {"model", "../home/vocab.txt", "", false},
		"a chain that leaves":             {"model", "link.txt", "", false},
		"a blob":                          {"models--a--b/snapshots/r", "../../blobs/1", "", true},
		"blobs of another model":          {"models--a--b/snapshots/r", "../../../models--c--d/blobs/1", "", false},
		"a cache, but elsewhere":          {"models--a--b/snapshots/r", "../../../home/vocab.txt", "", false},
		"blobs that are a link":           {"models--a--b/snapshots/r", "../../blobs/vocab.txt", "../home", false},
		"blobs beside no folder of cache": {"other/snapshots/r", "../../blobs/1", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := write(t, map[string]string{
				"home/vocab.txt": secret, "models--c--d/blobs/1": secret, "other/blobs/1": secret,
				c.folder + "/m.onnx": "\xff", c.folder + "/config.json": "{}", c.folder + "/other.txt": "[PAD]",
			})
			at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
			links := map[string]string{c.folder + "/vocab.txt": c.link, c.folder + "/link.txt": "../home/vocab.txt"}
			if err := os.MkdirAll(at("models--a--b"), 0o755); err != nil {
				t.Fatal(err)
			}
			if c.blobs != "" {
				links["models--a--b/blobs"] = c.blobs
			} else if err := errors.Join(os.MkdirAll(at("models--a--b/blobs"), 0o755),
				os.WriteFile(at("models--a--b/blobs/1"), []byte("[PAD]"), 0o644)); err != nil {
				t.Fatal(err)
			}
			for from, to := range links {
				if err := os.Symlink(filepath.FromSlash(to), at(from)); err != nil {
					t.Skip(err)
				}
			}
			to := t.TempDir()
			model := at(c.folder + "/m.onnx")
			f, err := publish(t, model, filepath.Join(to, "q.onnx"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(f.Copied, "vocab.txt") != c.copied || slices.Contains(f.Omitted, "vocab.txt") == c.copied {
				t.Errorf("copied %q, omitted %q", f.Copied, f.Omitted)
			}
			if c.copied && read(t, to, "vocab.txt") != "[PAD]" {
				t.Errorf("copied %q", read(t, to, "vocab.txt"))
			}
			// What is pushed or signed has no link, wherever it leads.
			var link *LinkError
			if names, err := Files(Root(model), model); !errors.As(err, &link) {
				t.Errorf("files to publish: %q, %v", names, err)
			}
		})
	}
}
