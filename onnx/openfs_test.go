package onnx

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/mcompress/mcompress/ir"
)

// sequential hides io.ReaderAt of files, as the files of zip archives lack it.
type sequential struct{ fs.FS }

type sequentialFile struct{ fs.File }

func (s sequential) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return sequentialFile{f}, nil
}

func TestOpenFSReadsWhatOpenReads(t *testing.T) {
	dir := filepath.Join("..", "fixtures")
	files := fstest.MapFS{}
	for _, name := range []string{"external.onnx", "external_a.bin", "external_b.bin"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files["models/"+name] = &fstest.MapFile{Data: data}
	}
	want := modelText(t, func() (*File, error) { return Open(filepath.Join(dir, "external.onnx")) })
	for name, open := range map[string]func() (*File, error){
		"folder":     func() (*File, error) { return OpenFS(os.DirFS(dir), "external.onnx") },
		"map":        func() (*File, error) { return OpenFS(files, "models/external.onnx") },
		"sequential": func() (*File, error) { return OpenFS(sequential{files}, "models/external.onnx") },
	} {
		if got := modelText(t, open); got != want {
			t.Errorf("%s: another model than Open's", name)
		}
	}
}

func TestReadHasNoFolder(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "fixtures", "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	want := modelText(t, func() (*File, error) { return Open(filepath.Join("..", "fixtures", "mlp.onnx")) })
	got := modelText(t, func() (*File, error) { return Read(bytes.NewReader(data), int64(len(data)), "mlp") })
	if got != want {
		t.Error("another model than Open's")
	}
	if data, err = os.ReadFile(filepath.Join("..", "fixtures", "external.onnx")); err != nil {
		t.Fatal(err)
	}
	var format *FormatError
	if _, err := Read(bytes.NewReader(data), int64(len(data)), "external"); !errors.As(err, &format) ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("external data without a folder: got %v", err)
	}
}

func TestSaveOptionsMayBeZero(t *testing.T) {
	f, err := Open(filepath.Join("..", "fixtures", "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := filepath.Join(t.TempDir(), "out.onnx")
	if _, err := Save(context.Background(), f.Model, path, SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	want := modelText(t, func() (*File, error) { return Open(filepath.Join("..", "fixtures", "mlp.onnx")) })
	if got := modelText(t, func() (*File, error) { return Open(path) }); got != want {
		t.Error("another model than the source")
	}
}

func modelText(t *testing.T, open func() (*File, error)) string {
	t.Helper()
	f, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	eval := ir.NewEval("")
	defer eval.Close()
	var b bytes.Buffer
	if err := f.Model.Text(context.Background(), eval, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
