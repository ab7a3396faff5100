package onnx

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/ir"
)

func TestLateMetadata(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  string // of the error
	}{{"0123456789", ""}, {"too long for it", "10"}, {"short", "10"}} {
		m := recipes(3, 1<<10, double)
		path := filepath.Join(t.TempDir(), "model.onnx")
		var written int64
		o := options(t)
		o.Progress = func(done, total int64) {
			if done == total {
				atomic.StoreInt64(&written, done)
			}
		}
		m.Meta = []ir.Entry{{Key: "late", Value: "place here", Late: func(context.Context) (string, error) {
			if atomic.LoadInt64(&written) == 0 {
				t.Error("called before the payloads were written")
			}
			return tt.value, nil
		}}, {Key: "k", Value: "v"}}
		_, err := Save(context.Background(), m, path, o)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q: got %v", tt.value, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		meta := mustOpen(t, path).Model.Meta
		if len(meta) != 2 || meta[0].Key != "late" || meta[0].Value != tt.value || meta[1].Value != "v" {
			t.Errorf("metadata is %+v", meta)
		}
	}
}

// A model is opened and measured before its late values are known; its digest is that of the complete file.
func TestFilledModelsAreOpenedBeforeTheyAreSealed(t *testing.T) {
	for _, external := range []bool{false, true} {
		m := recipes(3, 1<<10, double)
		path, o := filepath.Join(t.TempDir(), "model.onnx"), options(t)
		o.Digest = true
		var sealing atomic.Bool
		m.Meta = []ir.Entry{{Key: "late", Value: "place here", Late: func(context.Context) (string, error) {
			if !sealing.Load() {
				t.Error("called before the files are sealed")
			}
			return "0123456789", nil
		}}}
		set := &atomicfile.Set{Sync: true}
		staged, err := Layout(m, "model.onnx", LayoutOptions{External: external}).Fill(t.Context(), set, path, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := set.Folder(path)
		if err != nil {
			t.Fatal(err)
		}
		filled := mustOpen(t, filepath.Join(dir, "model.onnx"))
		got, err := ir.NewEval("").ReadAll(t.Context(), filled.Model.Graph.Consts()[0].Const)
		if want := bytes.Repeat([]byte{0, 0, 0x5a}, 1000); err != nil || !bytes.Equal(got, want) {
			t.Errorf("external %v: the payload is not there: %v", external, err)
		}
		sealing.Store(true)
		written, err := staged.Seal(t.Context())
		if err := errors.Join(err, staged.Close(), set.Publish(path), set.Close()); err != nil {
			t.Fatal(err)
		}
		for _, f := range written {
			sum := sha256.Sum256(readFile(t, filepath.Join(filepath.Dir(path), f.Name)))
			if f.SHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("external %v: %s has another digest", external, f.Name)
			}
		}
		if meta := mustOpen(t, path).Model.Meta; len(meta) != 1 || meta[0].Value != "0123456789" {
			t.Errorf("external %v: metadata is %+v", external, meta)
		}
	}
}

func TestLateMetadataThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.onnx")
	m := recipes(1, 1<<10, double)
	m.Meta = []ir.Entry{{Key: "late", Value: "x", Late: func(context.Context) (string, error) { return "", errRecipe }}}
	if _, err := Save(context.Background(), m, path, options(t)); !errors.Is(err, errRecipe) {
		t.Errorf("got %v, want the value's own error", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 0 {
		t.Errorf("the folder holds %v", entries)
	}
}
