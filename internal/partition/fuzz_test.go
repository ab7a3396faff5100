package partition

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
	"github.com/mcompress/mcompress/report/partition"
)

// A manifest that is accepted names files of its folder only, and is accepted again as it is written.
func FuzzManifest(f *testing.F) {
	shards, err := json.Marshal(manifest())
	if err != nil {
		f.Fatal(err)
	}
	stages := `{"version":1,"stages":[{"file":"a","parts":[{"name":"a","bytes":1}],"inputs":[{"name":"x"}],"outputs":["y"]},` +
		`{"file":"b","parts":[{"name":"b","bytes":1}],"inputs":[{"name":"y","from":"a"}],"outputs":["z"]}],"outputs":[{"name":"z","from":"b"}]}`
	for _, text := range []string{string(shards), stages} {
		hostile.Seed(f, hostile.Some(hostile.JSON(text), 200), text)
	}
	dir := f.TempDir()
	path := filepath.Join(dir, "m.shards.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		put := func(text []byte) {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		put(text)
		oracle.Linear.Check(t, len(text), func() {
			m, err := ReadManifest(path)
			if err != nil {
				return
			}
			for _, s := range m.Segments {
				for _, shard := range s.Shards {
					for _, name := range append(namesOf(shard.Parts), shard.File) {
						if filepath.Base(name) != name || !filepath.IsLocal(name) || name == "." {
							t.Errorf("%q is accepted as the name of a file", name)
						}
					}
				}
			}
			again, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			put(again)
			defer put(text)
			second, err := ReadManifest(path)
			if err != nil {
				t.Fatalf("%s is accepted, and not as it is written: %v", text, err)
			}
			if twice, err := json.Marshal(second); err != nil || !bytes.Equal(again, twice) {
				t.Errorf("%s becomes %s, %v", again, twice, err)
			}
		})
	})
}

func namesOf(parts []partition.Part) (names []string) {
	for _, p := range parts {
		names = append(names, p.Name)
	}
	return names
}
