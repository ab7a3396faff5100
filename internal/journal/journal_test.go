package journal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

var here = Identity{Version: "1", Source: "source", Request: "request"}

func open(t *testing.T, path string, id Identity) (*Journal, error) {
	t.Helper()
	return New(t.Context(), path, func(context.Context) (Identity, error) { return id, nil })
}

func opened(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := open(t, path, here)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func add(t *testing.T, j *Journal, unit string, parts ...[]byte) {
	t.Helper()
	if _, err := j.Add(t.Context(), unit, parts...); err != nil {
		t.Fatal(err)
	}
	j.found.Wait()
}

func closed(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// has checks the result of a unit.
func has(t *testing.T, j *Journal, unit string, want ...[]byte) {
	t.Helper()
	parts, ok := j.Result(unit)
	if !ok || len(parts) != len(want) {
		t.Fatalf("%s has %d parts, %v", unit, len(parts), ok)
	}
	for i, p := range parts {
		if b, err := io.ReadAll(p); err != nil || !bytes.Equal(b, want[i]) {
			t.Fatalf("part %d of %s is %q, %v", i, unit, b, err)
		}
	}
}

func TestResultsOfAnInterruptedRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx")
	j := opened(t, path)
	if _, err := os.Stat(Folder(path)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a folder without results: %v", err)
	}
	add(t, j, "a", []byte("one"), nil, []byte("three"))
	has(t, j, "a", []byte("one"), nil, []byte("three"))
	closed(t, j)
	j = opened(t, path)
	has(t, j, "a", []byte("one"), nil, []byte("three"))
	if _, err := j.Add(t.Context(), "a", nil); err == nil {
		t.Error("a second result of a unit")
	}
	if _, ok := j.Result("b"); ok {
		t.Error("a result of a unit that has none")
	}
	if err := j.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(Folder(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

// A log that ends anywhere, or has another byte anywhere in its last record, has the records before.
func TestBrokenLogs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx")
	j := opened(t, path)
	add(t, j, "a", []byte("one"))
	before := j.end
	add(t, j, "b", []byte("two"))
	closed(t, j)
	name := filepath.Join(Folder(path), logName)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	check := func(log []byte) {
		t.Helper()
		if err := os.WriteFile(name, log, 0o600); err != nil {
			t.Fatal(err)
		}
		j := opened(t, path)
		has(t, j, "a", []byte("one"))
		if _, ok := j.Result("b"); ok {
			t.Error("the result of a broken record")
		}
		add(t, j, "c", []byte("three"))
		closed(t, j)
		j = opened(t, path)
		has(t, j, "a", []byte("one"))
		has(t, j, "c", []byte("three"))
		closed(t, j)
	}
	for end := before; end < int64(len(whole)); end++ {
		check(whole[:end])
		broken := bytes.Clone(whole)
		broken[end] ^= 1
		check(broken)
	}
}

func TestResultsOfOtherJobsAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx")
	j := opened(t, path)
	add(t, j, "a", []byte("one"))
	closed(t, j)
	for _, other := range []struct {
		id   Identity
		want string
	}{
		{Identity{"2", here.Source, here.Request}, "version 1, now 2"},
		{Identity{here.Version, "x", here.Request}, "another source"},
		{Identity{here.Version, here.Source, "x"}, "other options or inputs"},
	} {
		_, err := open(t, path, other.id)
		var foreign *ForeignError
		if !errors.As(err, &foreign) || foreign.Difference != other.want || foreign.Path != Folder(path) {
			t.Errorf("%+v: %v", other.id, err)
		}
	}
	has(t, opened(t, path), "a", []byte("one"))
}

func TestDiscard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := Discard(path); err != nil {
		t.Fatalf("without results: %v", err)
	}
	j := opened(t, path)
	add(t, j, "a", []byte("one"))
	if _, err := open(t, path, here); err == nil {
		t.Error("two runs have one journal")
	}
	if err := Discard(path); err == nil {
		t.Error("the results of a run are discarded while it lasts")
	}
	closed(t, j)
	if err := Discard(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(Folder(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

// Results of a run that ended before its identity was computed are of no use.
func TestResultsWithoutIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx")
	j, err := New(t.Context(), path, func(ctx context.Context) (Identity, error) {
		<-ctx.Done()
		return Identity{}, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Add(t.Context(), "a", []byte("one")); err != nil {
		t.Fatal(err)
	}
	closed(t, j)
	j = opened(t, path)
	if _, ok := j.Result("a"); ok {
		t.Error("a result without identity")
	}
	add(t, j, "a", []byte("two"))
	closed(t, j)
	has(t, opened(t, path), "a", []byte("two"))
}

func FuzzLog(f *testing.F) {
	path := filepath.Join(f.TempDir(), "m.onnx")
	j, err := New(f.Context(), path, func(context.Context) (Identity, error) { return here, nil })
	if err != nil {
		f.Fatal(err)
	}
	if _, err := j.Add(f.Context(), "a", []byte("one"), []byte("two")); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(Folder(path), logName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, log []byte) {
		path := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.Mkdir(Folder(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(Folder(path), logName), log, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := open(t, path, here)
		if err != nil {
			return
		}
		j.found.Wait()
		for unit := range j.known {
			if parts, ok := j.Result(unit); ok {
				for _, p := range parts {
					if _, err := io.ReadAll(p); err != nil {
						t.Error(err)
					}
				}
			}
		}
		closed(t, j)
	})
}
