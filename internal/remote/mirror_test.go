package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// mirrors are those of n machines, of one folder in a bucket.
func mirrors(t *testing.T, s *settings, n int) (all []*Mirror) {
	t.Helper()
	for range n {
		all = append(all, newMirror(s, t.TempDir(), "s3://bucket/plan/parts"))
	}
	return all
}

// again is the mirror of the next process on the machine of m.
func again(m *Mirror) *Mirror { return newMirror(m.settings, m.dir, m.url) }

// appended appends to a log on disk and pushes it.
func appended(t *testing.T, m *Mirror, log, text string) error {
	t.Helper()
	path := m.path(log)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return m.Push(t.Context(), log, f, st.Size())
}

// pulls checks that a log on disk has a content after Pull.
func pulls(t *testing.T, m *Mirror, log, want string) {
	t.Helper()
	if err := m.Pull(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(m.path(log))
	if err != nil && !(want == "" && errors.Is(err, os.ErrNotExist)) || string(got) != want {
		t.Errorf("the log is %q, want %q: %v", got, want, err)
	}
}

// flaky answers every third request by 503, and loses the response to every third one that writes.
func flaky() func(http.ResponseWriter, *http.Request) bool {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		switch count := n.Add(1); {
		case count%3 == 0:
			status(w, http.StatusServiceUnavailable, "SlowDown")
			return true
		case count%3 == 1 && r.Method == http.MethodPut:
			_, _ = io.CopyN(io.Discard, r.Body, 1)
			panic(http.ErrAbortHandler)
		}
		return false
	}
}

// A log is received as it was pushed, by processes that begin at any time and in spite of 503 and lost connections.
func TestMirroredLog(t *testing.T) {
	settings, _ := faulty(t, flaky())
	m := mirrors(t, settings, 3)
	pulls(t, m[1], "0/log", "")
	if err := appended(t, m[0], "0/log", "one "); err != nil {
		t.Fatal(err)
	}
	pulls(t, m[1], "0/log", "one ")
	pulls(t, m[1], "0/log", "one ")
	if err := errors.Join(appended(t, m[0], "0/log", "two "), appended(t, again(m[0]), "0/log", "three ")); err != nil {
		t.Fatal(err)
	}
	pulls(t, again(m[1]), "0/log", "one two three ")
	pulls(t, m[2], "0/log", "one two three ")
	pulls(t, again(m[0]), "0/log", "one two three ")
	pulls(t, m[2], "1/log", "")
}

// Of two processes that continue a log, one succeeds. The other one receives what that has pushed, in place of its own,
// when it starts again.
func TestMirroredLogOfTwoProcesses(t *testing.T) {
	settings, _ := faulty(t, none)
	m := mirrors(t, settings, 2)
	if err := appended(t, m[0], "log", "begin "); err != nil {
		t.Fatal(err)
	}
	pulls(t, m[1], "log", "begin ")
	if err := appended(t, m[1], "log", "second "); err != nil {
		t.Fatal(err)
	}
	var e *Error
	if err := appended(t, m[0], "log", "first "); !errors.As(err, &e) ||
		!strings.Contains(err.Error(), "s3://bucket/plan/parts/log: another process") {
		t.Errorf("error %v", err)
	}
	pulls(t, again(m[0]), "log", "begin second ")
	if err := appended(t, again(m[0]), "log", "third"); err != nil {
		t.Error(err)
	}
	// What is not pushed stays, unless another process continued the log.
	if err := os.WriteFile(m[0].path("log"), []byte("begin second thirdlocal"), 0o600); err != nil {
		t.Fatal(err)
	}
	pulls(t, again(m[0]), "log", "begin second thirdlocal")
	// What the disk has lost, or has in part only, is received again.
	if err := m[0].Push(t.Context(), "log", strings.NewReader("beg"), 3); !errors.As(err, &e) {
		t.Errorf("error %v", err)
	}
	pulls(t, again(m[0]), "log", "begin second third")
	if err := os.WriteFile(m[0].path("log"), []byte("beg"), 0o600); err != nil {
		t.Fatal(err)
	}
	pulls(t, again(m[0]), "log", "begin second third")
}

// Files are received as they were stored, stored once, and copied in the bucket in parts; what all processes sent is
// removed.
func TestMirroredFiles(t *testing.T) {
	var copied, sent atomic.Int64
	settings, folder := faulty(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			if r.Header.Get("X-Amz-Copy-Source") != "" {
				copied.Add(1)
			} else {
				sent.Add(1)
			}
		}
		return false
	})
	settings.copySize = 5 << 20
	m := mirrors(t, settings, 3)
	content := randomBytes(11 << 20)
	path := m[0].path("0/file")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := m[1].Fetch(t.Context(), "0/file"); err != nil {
		t.Errorf("a file that is not stored: %v", err)
	}
	if err := errors.Join(m[0].Store(t.Context(), "0/file"), m[0].Store(t.Context(), "0/file")); err != nil ||
		sent.Load() != 1 {
		t.Errorf("%d parts are sent: %v", sent.Load(), err)
	}
	for range 2 { // the second one finds the file on disk
		if err := again(m[1]).Fetch(t.Context(), "0/file"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(m[1].path("0/file")); err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%d bytes are received: %v", len(got), err)
	}
	if err := m[1].Fetch(t.Context(), "0/file"); err != nil {
		t.Fatal(err)
	}
	o, err := settings.opened(t.Context(), "s3://bucket/plan/parts/0/file")
	if err != nil {
		t.Fatal(err)
	}
	u := Upload{Path: m[1].path("0/file"), URL: "s3://bucket/plan/result", SHA256: o.SHA256(),
		From: m[1].Object(o.SHA256())}
	if err := settings.publish(t.Context(), []Upload{u}); err != nil || copied.Load() != 3 || sent.Load() != 1 {
		t.Errorf("%d parts are copied, %d sent: %v", copied.Load(), sent.Load(), err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "plan", "result")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes are copied: %v", len(got), err)
	}
	// A copy of an object that was replaced since is none.
	if err := settings.publish(t.Context(),
		uploads(t, map[string][]byte{"plan/parts/0/file": append(bytes.Clone(content[1:]), 0)},
			"plan/parts/0/file")); err != nil {
		t.Fatal(err)
	}
	if err := settings.publish(t.Context(), []Upload{u}); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v", err)
	}
	if err := m[2].Fetch(t.Context(), "0/file"); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("error %v", err)
	}
	for i := range 3 {
		if err := appended(t, m[0], fmt.Sprintf("%d/log", i), "text"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(m[2].Remove(t.Context()), m[2].Remove(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "plan", "parts")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("objects are left: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "plan", "result")); err != nil {
		t.Error(err)
	}
}

// An object is created once. One of the same content is that of an earlier attempt, whose response was lost.
func TestCreate(t *testing.T) {
	settings, _ := faulty(t, none)
	create := func(text string) error {
		loc, err := parse("s3://bucket/x")
		if err != nil {
			t.Fatal(err)
		}
		return settings.create(t.Context(), loc, io.NewSectionReader(strings.NewReader(text), 0, int64(len(text))))
	}
	var e *Error
	if err := errors.Join(create("one"), create("one")); err != nil {
		t.Error(err)
	}
	if err := create("two"); !errors.Is(err, errExists) || !errors.As(err, &e) {
		t.Errorf("error %v", err)
	}
	var path *PathError
	if err := Create(t.Context(), "https://host/x", nil); !errors.As(err, &path) {
		t.Errorf("error %v", err)
	}
}
