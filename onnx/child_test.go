package onnx

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/ir"
)

// childPath names the model that this test binary, run as a child of itself, writes.
const childPath = "MCOMPRESS_TEST_CHILD"

// child is this binary, running one of its tests only. Its temporary folders are removed after t, also if it is killed.
func child(t *testing.T, test, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), childPath+"="+path, "TMPDIR="+t.TempDir())
	return cmd
}

// A kill in mid-write leaves what was there before under the final name, or nothing.
func TestKillInMidWrite(t *testing.T) {
	for _, old := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "model.onnx")
		if old {
			if err := os.WriteFile(path, []byte("old "+path), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := child(t, "TestChildThatIsKilled", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		untilHalf(t, out)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		b, err := os.ReadFile(path)
		if old && string(b) != "old "+path {
			t.Errorf("the old file holds %.40q", b)
		}
		if !old && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is a file of %d bytes under the final name (%v)", len(b), err)
		}
		if _, err := os.Stat(path + ".data"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is a data file under its final name (%v)", err)
		}
	}
}

func untilHalf(t *testing.T, out io.Reader) {
	t.Helper()
	for s := bufio.NewScanner(out); s.Scan(); {
		if s.Text() == "half" {
			return
		}
	}
	t.Fatal("the child never wrote half of its model")
}

// TestChildThatIsKilled writes half of a payload and waits for the end.
func TestChildThatIsKilled(t *testing.T) {
	path := os.Getenv(childPath)
	if path == "" {
		t.Skip("a part of TestKillInMidWrite")
	}
	m := recipes(1, 1<<10, func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		if err := ir.Copy(ctx, out[0], in[0], 1500); err != nil {
			return err
		}
		fmt.Println("half")
		time.Sleep(time.Minute)
		return double(ctx, in, out)
	})
	o := options(t)
	o.External = true
	mustSave(t, m, path, o)
}

// noSpace saves a model of some size to path and requires an error of one line that
// names the file, and the folder as it was.
func noSpace(t *testing.T, path string, external bool) {
	t.Helper()
	m := ir.NewModel()
	m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Uint8, Shape: []int64{8 << 20}}, Source: ir.Span{R: zeros{}}})
	if err := os.WriteFile(path, []byte("old "+path), 0o644); err != nil {
		t.Fatal(err)
	}
	o := options(t)
	o.External, o.Sync = external, true
	_, err := Save(context.Background(), m, path, o)
	if err == nil {
		t.Fatal("8 MiB were written without space for them")
	}
	oneLine(t, err)
	if !strings.Contains(err.Error(), path) {
		t.Errorf("%q does not name %s", err, path)
	}
	untouched(t, path)
}
