package onnx

import (
	"os"
	"path/filepath"
	"testing"
)

// inFolder writes a model whose tensor w is in location, and w.bin of size bytes.
func inFolder(t *testing.T, size int, entries ...string) string {
	t.Helper()
	path := writeModel(t, withTensor(externalOf(2, entries...)))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "w.bin"), make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func refusesFile(t *testing.T, path, want string) {
	t.Helper()
	f, err := Open(path)
	if err == nil {
		f.Close()
		t.Fatal("Open took it")
	}
	formatError(t, err, path, want)
}

func TestExternalRangesStayInTheFile(t *testing.T) {
	for _, tt := range []struct {
		name    string
		size    int
		entries []string
		want    string // of the refusal; empty if the model opens
	}{
		{"whole", 8, []string{"location", "w.bin"}, ""},
		{"last", 24, []string{"location", "w.bin", "offset", "16", "length", "8"}, ""},
		{"short by a byte", 7, []string{"location", "w.bin"}, "7 bytes"},
		{"empty", 0, []string{"location", "w.bin"}, "0 bytes"},
		{"offset at the end", 8, []string{"location", "w.bin", "offset", "8"}, "8 to 16"},
		{"offset beyond the end", 8, []string{"location", "w.bin", "offset", "9"}, "9 to 17"},
		{"offset whose end wraps", 8, []string{"location", "w.bin", "offset", "9223372036854775807"}, "refers to bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := inFolder(t, tt.size, tt.entries...)
			if tt.want != "" {
				refusesFile(t, path, tt.want)
				return
			}
			mustOpen(t, path)
		})
	}
}

func TestExternalDataMayNotBeAFolder(t *testing.T) {
	path := inFolder(t, 8, "location", "sub")
	if err := os.Mkdir(filepath.Join(filepath.Dir(path), "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	refusesFile(t, path, "regular file")
}

func TestExternalDataOfALink(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.bin")
	if err := os.WriteFile(outside, make([]byte, 8), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, target, want string }{
		{"inside the folder", "w.bin", ""},
		{"out of the folder", outside, "external data"},
		{"out of the folder by ..", filepath.Join("..", filepath.Base(filepath.Dir(outside)), "secret.bin"), "external data"},
		{"to itself", "link.bin", "external data"},
		{"to nothing", "none.bin", "missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := inFolder(t, 8, "location", "link.bin")
			if err := os.Symlink(tt.target, filepath.Join(filepath.Dir(path), "link.bin")); err != nil {
				t.Skip(err) // Windows requires a privilege
			}
			if tt.want != "" {
				refusesFile(t, path, tt.want)
				return
			}
			mustOpen(t, path)
		})
	}
}

func TestExternalDataInALinkedFolder(t *testing.T) {
	path := inFolder(t, 8, "location", "sub/w.bin")
	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "w.bin"), make([]byte, 8), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(filepath.Dir(path), "sub")); err != nil {
		t.Skip(err)
	}
	refusesFile(t, path, "external data")
}

func TestPartsAreTheFilesOfAModel(t *testing.T) {
	f := mustOpen(t, fixture(t, "external.onnx"))
	var got []string
	size := int64(0)
	for _, p := range f.Parts() {
		got = append(got, p.Name)
		st, err := os.Stat(fixture(t, p.Name))
		if err != nil {
			t.Fatal(err)
		}
		if p.Size != st.Size() {
			t.Errorf("%s has %d bytes, Part has %d", p.Name, st.Size(), p.Size)
		}
		size += st.Size()
	}
	if len(got) != 3 || got[0] != "external.onnx" {
		t.Errorf("parts %q, want the model and then its two data files", got)
	}
	if f.Size() != size {
		t.Errorf("Size is %d, the files have %d", f.Size(), size)
	}
	if !f.External() || mustOpen(t, fixture(t, "mlp.onnx")).External() {
		t.Error("External is wrong for one of the models")
	}
}
