package onnx

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/journal"
	"github.com/mcompress/mcompress/ir"
)

// payloads is the number of recipes of the models below. The last one is the largest, and runs first.
const payloads = 6

// A run that is interrupted after some payloads computes only the others when it is repeated, and writes the same
// files; a payload that was lost is computed again.
func TestPayloadsAreKept(t *testing.T) {
	const interruption = 4
	for _, external := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "m.onnx")
		save := func(path string, kept ir.Journal, limit int64) (computed int64, err error) {
			var n atomic.Int64
			m := recipes(payloads, 0, func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
				if n.Add(1) > limit {
					return errors.New("interrupted")
				}
				return double(ctx, in, out)
			})
			_, err = Save(t.Context(), m, path, SaveOptions{Workers: 1, Memory: 1 << 20, External: external, Digest: true,
				Journal: kept})
			return n.Load(), err
		}
		opened := func() *journal.Journal {
			j, err := journal.New(t.Context(), path, func(context.Context) (journal.Identity, error) {
				return journal.Identity{}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		plain := filepath.Join(t.TempDir(), "m.onnx")
		if _, err := save(plain, nil, payloads); err != nil {
			t.Fatal(err)
		}
		j := opened()
		if _, err := save(path, j, interruption); err == nil {
			t.Fatal("not interrupted")
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		name := "0"
		if external {
			name = "1"
		}
		kept, err := filepath.Glob(filepath.Join(journal.Folder(path), "*."+name+".begun"))
		if err != nil || len(kept) != 1 {
			t.Fatalf("%v: %v", kept, err)
		}
		spoil(t, kept[0])
		j = opened()
		computed, err := save(path, j, payloads)
		if want := int64(payloads - interruption + 1); err != nil || computed != want {
			t.Errorf("%d payloads are computed, want %d: %v", computed, want, err)
		}
		if err := j.Remove(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"m.onnx", "m.onnx.data"}[:1+btoi(external)] {
			want, err := os.ReadFile(filepath.Join(filepath.Dir(plain), name))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(filepath.Dir(path), name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs: %v", name, err)
			}
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1+btoi(external) {
			t.Errorf("%v is left: %v", left, err)
		}
	}
}

// What an interrupted run wrote for another layout is not taken for that of this one, though it is in the same places.
func TestOtherLayoutsAreNotKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.onnx")
	j, err := journal.New(t.Context(), path, func(context.Context) (journal.Identity, error) {
		return journal.Identity{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	save := func(path, name string, b byte, kept ir.Journal) []byte {
		m := recipes(payloads, 0, func(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
			n, err := in[0].(io.Seeker).Seek(0, io.SeekEnd)
			if err != nil {
				return err
			}
			_, err = out[0].Write(bytes.Repeat([]byte{b}, int(n/3)))
			_, other := out[1].Write(bytes.Repeat([]byte{b}, int(n-n/3)))
			return errors.Join(err, other)
		})
		m.Graph.Name = name
		if _, err := Save(t.Context(), m, path, SaveOptions{Workers: 1, Memory: 1 << 20, Journal: kept}); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	save(path, "g", 1, j)
	if !bytes.Equal(save(path, "h", 2, j), save(filepath.Join(dir, "plain.onnx"), "h", 2, nil)) {
		t.Error("the model has payloads of another layout")
	}
	if err := j.Remove(); err != nil {
		t.Fatal(err)
	}
}

// spoil changes a byte of the largest payload that an interrupted run wrote.
func spoil(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte{payloads - 1, 0, 0x5a})] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Several processes write a data file each, with scales that are in the model file, and another one the model: the
// files are those of one process, and each recipe runs once. A file that is lost is computed by the last process, also
// after an interruption.
func TestDataFilesOfSeveralProcesses(t *testing.T) {
	const workers = 3
	var computed atomic.Int64
	var interrupted bool
	planned := func(name string) *Plan {
		m := recipes(payloads, 0, func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			if interrupted {
				return context.Canceled
			}
			computed.Add(1)
			return double(ctx, in, out)
		})
		for i := range payloads {
			r := &ir.Recipe{
				Name: "scaled",
				In: []*ir.Tensor{{Spec: ir.Spec{Name: "in", DType: ir.Uint8, Shape: []int64{3000}},
					Source: ir.Mem(bytes.Repeat([]byte{byte(i + 1)}, 3000))}},
				Out: []ir.Spec{{DType: ir.Uint8, Shape: []int64{1}}, {DType: ir.Uint8, Shape: []int64{2999}}},
				Run: func(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
					computed.Add(1)
					b := make([]byte, 3000)
					if err := ir.ReadFull(in[0], b, 0); err != nil {
						return err
					}
					_, err := out[0].Write(b[:1])
					_, err1 := out[1].Write(b[1:])
					return errors.Join(err, err1)
				},
			}
			for j, c := range r.Derive() {
				m.Graph.AddOutput(m.Graph.Insert(nil, "Identity", []*ir.Value{m.Graph.AddConst(fmt.Sprintf("s%d_%d", i, j), c)}))
			}
		}
		m.Meta = append(m.Meta, ir.Entry{Key: "late", Value: "....", Late: func(context.Context) (string, error) {
			return "done", nil
		}})
		return Layout(m, name, LayoutOptions{DataFiles: workers})
	}
	plain := filepath.Join(t.TempDir(), "m.onnx")
	if _, err := planned("m.onnx").Write(t.Context(), plain, SaveOptions{Digest: true}); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{false, true} {
		computed.Store(0)
		folder, path := t.TempDir(), filepath.Join(t.TempDir(), "m.onnx")
		join := func(i int) *journal.Group {
			g, err := journal.Join(t.Context(), folder, i, workers, journal.Identity{Request: "r"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		for i := range workers {
			g, set := join(i), &atomicfile.Set{}
			written, err := planned("m.onnx").Stage(t.Context(), set, path, nil, SaveOptions{Digest: true, Journal: g})
			var elsewhere *ir.Elsewhere
			if last := i == workers-1; errors.As(err, &elsewhere) == last || last && err != nil {
				t.Fatalf("worker %d: %v", i, err)
			}
			if i == 0 && (len(written) != 1 || written[0].Name != "m.onnx.data-00001-of-00003") {
				t.Errorf("worker 0 has written %v", written)
			}
			if err := errors.Join(set.Close(), g.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if lost {
			files, err := filepath.Glob(filepath.Join(folder, "00001", "file.*.2"))
			if err != nil || len(files) != 1 || os.Remove(files[0]) != nil {
				t.Fatal(files, err)
			}
		}
		if interrupted = lost; lost {
			g := join(workers)
			if _, err := planned("m.onnx").Write(t.Context(), path, SaveOptions{Digest: true, Journal: g}); !errors.Is(err,
				context.Canceled) {
				t.Errorf("error %v", err)
			}
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			interrupted = false
		}
		g := join(workers)
		written, err := planned("m.onnx").Write(t.Context(), path, SaveOptions{Digest: true, Journal: g})
		if err := errors.Join(err, g.Close()); err != nil {
			t.Fatal(err)
		}
		if n := computed.Load(); n < 2*payloads || (n > 2*payloads) != lost {
			t.Errorf("%d recipes ran, want %d (lost: %v)", n, 2*payloads, lost)
		}
		for _, w := range written {
			want, err := os.ReadFile(filepath.Join(filepath.Dir(plain), w.Name))
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(filepath.Dir(path), w.Name))
			if sum := fmt.Sprintf("%x", sha256.Sum256(want)); err != nil || !bytes.Equal(got, want) || w.SHA256 != sum {
				t.Errorf("%s differs, or its digest %s, want %s: %v", w.Name, w.SHA256, sum, err)
			}
		}
		if len(written) != 1+workers {
			t.Errorf("%d files", len(written))
		}
	}
}
