package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
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
	j.identityAdded.Wait()
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
	hostile.Seed(f, hostile.Some(hostile.Binary(whole), 100), string(whole), "")
	f.Fuzz(func(t *testing.T, log []byte) {
		oracle.Linear.Check(t, len(log), func() { readLog(t, log) })
	})
}

// readLog reads the results of a log of any bytes. What is found is found again after a result is added.
func readLog(t *testing.T, log []byte) {
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
	j.identityAdded.Wait()
	found := map[string]string{}
	for unit := range j.parts {
		if parts, ok := j.Result(unit); ok {
			found[unit] = joined(t, parts)
		}
	}
	if _, ok := found["added"]; !ok {
		add(t, j, "added", []byte("result"))
		found["added"] = "6 result"
	}
	closed(t, j)
	j = opened(t, path)
	for unit, want := range found {
		if parts, ok := j.Result(unit); !ok || joined(t, parts) != want {
			t.Errorf("%q is lost", unit)
		}
	}
	closed(t, j)
}

// joined are the parts of a result with their lengths.
func joined(t *testing.T, parts []*io.SectionReader) (text string) {
	t.Helper()
	for _, p := range parts {
		b, err := io.ReadAll(p)
		if err != nil {
			t.Error(err)
		}
		text += fmt.Sprintf("%d %s", len(b), b)
	}
	return text
}

// Processes of a group have the results of all, and divide units; a log that is torn, of another job or started anew
// counts as far as it is sound.
func TestGroup(t *testing.T) {
	folder := t.TempDir()
	join := func(i int) *Group {
		t.Helper()
		g, err := Join(t.Context(), folder, i, 2, here, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	a, b := join(0), join(1)
	costs := []int64{1, 1, 1, 1}
	if x, y := a.Mine(costs), b.Mine(costs); !slices.Equal(x, []bool{true, false, true, false}) ||
		!slices.Equal(y, []bool{false, true, false, true}) {
		t.Errorf("%v and %v are mine", x, y)
	}
	if _, err := a.Add(t.Context(), "one", []byte("1")); err != nil {
		t.Fatal(err)
	}
	a.identityAdded.Wait()
	if _, ok := b.Result("one"); ok {
		t.Error("a result before Refresh")
	}
	if err := b.Wait(t.Context(), time.Minute, func() bool { _, ok := b.Result("one"); return ok }); err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context(), 0, func() bool { return false }); err == nil {
		t.Error("a wait without an end")
	}
	own, err := a.File(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if path, err := b.File(t.Context(), "one"); err != nil || path != own {
		t.Errorf("the file of a result is %s, want %s: %v", path, own, err)
	}
	if path, err := b.File(t.Context(), "two"); err != nil || path == own {
		t.Errorf("the file of no result is %s: %v", path, err)
	}
	if err := errors.Join(a.End(t.Context()), a.End(t.Context()), b.Refresh(t.Context())); err != nil || !a.Ended() ||
		b.Ended() || !slices.Equal(b.Missing(), []int{1}) {
		t.Errorf("%v have not ended: %v", b.Missing(), err)
	}
	// A torn record is none, and a log that was started anew has none.
	f, err := os.OpenFile(filepath.Join(folder, "00000", logName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("torn"), a.end); err != nil {
		t.Fatal(err)
	}
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.Result("one"); !ok {
		t.Error("a torn record removes those before it")
	}
	if err := errors.Join(f.Close(), a.Close(), os.Remove(f.Name()), b.Refresh(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.Result("one"); ok {
		t.Error("the result of a removed log")
	}
	// A process that was started anew has the results of its new log only, each once.
	a = join(0)
	if _, err := a.Add(t.Context(), "three", []byte("3")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Add(t.Context(), "three", []byte("3")); err == nil {
		t.Error("a second result of a unit")
	}
	a.identityAdded.Wait()
	if err := errors.Join(b.Refresh(t.Context()), b.Refresh(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.Result("one"); ok {
		t.Error("a result of the log before")
	}
	if _, ok := b.Result("three"); !ok {
		t.Error("no result of the new log")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	// The last process computes everything, and only one does.
	last := join(2)
	if !slices.Equal(last.Mine(costs), []bool{true, true, true, true}) {
		t.Error("the last process does not compute all units")
	}
	if err := last.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	var busy *atomicfile.BusyError
	if _, err := Join(t.Context(), folder, 2, 2, here, nil); !errors.As(err, &busy) {
		t.Errorf("two last processes: %v", err)
	}
	var foreign *ForeignError
	if _, err := b.Add(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	b.identityAdded.Wait()
	if _, err := Join(t.Context(), folder, 0, 2, Identity{Request: "other"}, nil); !errors.As(err, &foreign) {
		t.Errorf("another job: %v", err)
	}
	if err := errors.Join(b.Close(), last.Remove(t.Context())); err != nil {
		t.Fatal(err)
	}
	for i, l := range b.others {
		if l.file != nil {
			t.Errorf("the log of process %d is open after Close", i)
		}
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}
