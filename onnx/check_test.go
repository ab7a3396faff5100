package onnx

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// payloads are the constants of a model, read one after the other.
func payloads(t *testing.T, m *ir.Model) []byte {
	t.Helper()
	var all []byte
	for _, v := range m.Graph.Consts() {
		b, err := io.ReadAll(io.NewSectionReader(v.Const.Source.(ir.Span).R, v.Const.Source.(ir.Span).Off, v.Const.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

func TestCheckSeesTheModelBeforeItHasItsName(t *testing.T) {
	for _, external := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "model.onnx")
		var seen []byte
		o := options(t)
		o.External = external
		o.Check = func(_ context.Context, f *File) error {
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("external %v: the file is there already: %v", external, err)
			}
			seen = payloads(t, f.Model)
			return nil
		}
		mustSave(t, recipes(3, 1<<16, double), path, o)
		if want := payloads(t, mustOpen(t, path).Model); len(want) == 0 || !bytes.Equal(seen, want) {
			t.Errorf("external %v: %d bytes were seen, want the %d that are there now", external, len(seen), len(want))
		}
	}
}

func TestWhatACheckRefusesLeavesNothing(t *testing.T) {
	dir, broken := t.TempDir(), errors.New("broken")
	o := options(t)
	o.External = true
	o.Check = func(context.Context, *File) error { return broken }
	if _, err := Save(t.Context(), recipes(2, 1<<16, double), filepath.Join(dir, "model.onnx"), o); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("not removed: %v, %v", left, err)
	}
}

func TestLinkedFilesAreAModelOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	o := options(t)
	o.External = true
	o.Check = func(_ context.Context, f *File) error {
		links := filepath.Join(dir, "links")
		if err := os.Mkdir(links, 0o755); err != nil {
			return err
		}
		path, err := f.Link(links)
		if err != nil {
			return err
		}
		if got, want := payloads(t, mustOpen(t, path).Model), payloads(t, f.Model); !bytes.Equal(got, want) {
			t.Errorf("the linked model has %d bytes, want %d", len(got), len(want))
		}
		return nil
	}
	mustSave(t, recipes(2, 1<<16, double), filepath.Join(dir, "model.onnx"), o)
}
