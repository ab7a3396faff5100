package journal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcompress/mcompress/internal/atomicfile"
)

// A store is what the mirrors of all machines exchange.
type store struct {
	mu      sync.Mutex
	content map[string][]byte
	failing error
	pulls   int
}

// A machine is the mirror of a folder. It has the number of bytes of each log that it pulled or pushed.
type machine struct {
	*store
	folder string
	known  map[string]int
}

var errTaken = errors.New("taken over")

func (m *machine) Pull(_ context.Context, log string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pulls++
	text, n := m.content[log], m.known[log]
	if len(text) == n || m.failing != nil {
		return m.failing
	}
	path := filepath.Join(m.folder, filepath.FromSlash(log))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
		f, _ = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text[n:], int64(n))
	m.known[log] = len(text)
	return errors.Join(err, f.Truncate(int64(len(text))), f.Close())
}

func (m *machine) Push(ctx context.Context, log string, content io.ReaderAt, end int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.failing != nil || ctx.Err() != nil:
		return errors.Join(m.failing, ctx.Err())
	case len(m.content[log]) != m.known[log]:
		return errTaken
	}
	text, err := io.ReadAll(io.NewSectionReader(content, 0, end))
	m.content[log], m.known[log] = text, len(text)
	return err
}

func (m *machine) Store(_ context.Context, file string) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.content[file], err = os.ReadFile(filepath.Join(m.folder, filepath.FromSlash(file)))
	return err
}

func (m *machine) Fetch(_ context.Context, file string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.content[file]
	if !ok {
		return nil
	}
	path := filepath.Join(m.folder, filepath.FromSlash(file))
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600))
}

func (m *machine) Remove(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.content)
	return nil
}

// joined is process number index of two workers, on a machine that has a folder.
func (s *store) joined(t *testing.T, ctx context.Context, folder string, index int, known map[string]int) *Group {
	t.Helper()
	g, err := Join(ctx, folder, index, 2, here, &machine{s, folder, known})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// sent sends the results of a group, as a process does before it waits.
func sent(t *testing.T, g *Group) {
	t.Helper()
	var patience *PatienceError
	if err := g.Wait(t.Context(), 0, func() bool { return false }); !errors.As(err, &patience) {
		t.Fatal(err)
	}
}

func newStore() *store { return &store{content: map[string][]byte{}} }

// Processes without a shared folder have the results and files of all, also after they have lost theirs.
func TestMirroredGroup(t *testing.T) { synctest.Test(t, testMirroredGroup) }

func testMirroredGroup(t *testing.T) {
	s := newStore()
	folder := t.TempDir()
	a, b := s.joined(t, t.Context(), folder, 0, map[string]int{}),
		s.joined(t, t.Context(), t.TempDir(), 1, map[string]int{})
	add := func(g *Group, unit string) {
		t.Helper()
		if _, err := g.Add(t.Context(), unit, []byte(unit)); err != nil {
			t.Fatal(err)
		}
	}
	add(a, "one")
	if err := b.Wait(t.Context(), time.Minute, func() bool { _, ok := b.Result("one"); return ok }); err != nil {
		t.Error(err)
	}
	var patience *PatienceError
	begin := s.pulls
	if err := b.Wait(t.Context(), time.Minute, func() bool { return false }); !errors.As(err, &patience) ||
		s.pulls-begin > 12 {
		t.Errorf("%d logs are received in a minute: %v", s.pulls-begin, err)
	}
	file := func(g *Group, name, content string) {
		t.Helper()
		path, err := g.File(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file(a, "one", "complete")
	file(a, "two", "begun")
	if err := a.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(s.content)); !slices.Equal(got, []string{"00000/file.one", "00000/journal"}) {
		t.Errorf("%v are sent", got)
	}
	if err := errors.Join(a.Close(), b.Refresh(t.Context())); err != nil || !slices.Equal(b.Missing(), []int{1}) {
		t.Errorf("%v have not ended: %v", b.Missing(), err)
	}
	if path, err := b.File(t.Context(), "one"); err != nil {
		t.Error(err)
	} else if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a worker has received the file of another one: %v", err)
	}
	has := func(g *Group, unit string) {
		t.Helper()
		path, err := g.File(t.Context(), unit)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "complete" {
			t.Errorf("the file of %s is %q: %v", unit, got, err)
		}
	}
	last := s.joined(t, t.Context(), t.TempDir(), 2, map[string]int{})
	has(last, "one")
	other := s.joined(t, t.Context(), t.TempDir(), 0, map[string]int{})
	has(other, "one")
	if !other.Ended() {
		t.Error("a worker on another machine has not ended")
	}
	// A machine with an older log receives what another one has added.
	add(other, "three")
	sent(t, other)
	anew := s.joined(t, t.Context(), folder, 0, map[string]int{"00000/journal": 0})
	if _, ok := anew.Result("three"); !ok {
		t.Error("a result of another machine is missing")
	}
	if err := errors.Join(other.Close(), anew.Close(), b.Close(), last.Remove(t.Context())); err != nil ||
		len(s.content) > 0 {
		t.Errorf("%d objects are left: %v", len(s.content), err)
	}
}

// Logs of other processes are read the less often the longer nothing is new, but a new result is seen within
// maxInterval.
func TestResultsAreSeenInTime(t *testing.T) {
	for _, quiet := range []time.Duration{0, minInterval, 5 * time.Second, 40 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			a, b := s.joined(t, t.Context(), t.TempDir(), 0, map[string]int{}),
				s.joined(t, t.Context(), t.TempDir(), 1, map[string]int{})
			go func() {
				time.Sleep(quiet)
				if _, err := a.Add(t.Context(), "one", []byte("one")); err != nil {
					t.Error(err)
				}
				sent(t, a)
			}()
			begin := time.Now()
			err := b.Wait(t.Context(), time.Hour, func() bool { _, ok := b.Result("one"); return ok })
			if d := time.Since(begin) - quiet; err != nil || d > min(quiet+minInterval, maxInterval) {
				t.Errorf("a result after %v is seen %v later: %v", quiet, d, err)
			}
			if most := int(quiet/maxInterval) + 5; s.pulls > 2*most+4 {
				t.Errorf("%d logs are received in %v", s.pulls, quiet)
			}
			if err := errors.Join(a.Close(), b.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Results are sent some time after they were added, also those that are added after others were sent.
func TestResultsAreSentInTheBackground(t *testing.T) { synctest.Test(t, testBackground) }

func testBackground(t *testing.T) {
	s := newStore()
	g := s.joined(t, t.Context(), t.TempDir(), 0, map[string]int{})
	for _, unit := range []string{"one", "two", "three"} {
		if _, err := g.Add(t.Context(), unit, []byte(unit)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(delay + time.Second)
		synctest.Wait()
		s.mu.Lock()
		sent := bytes.Contains(s.content["00000/journal"], []byte(unit))
		s.mu.Unlock()
		if !sent {
			t.Errorf("the result of %s is not sent within %v", unit, delay)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// Of two processes that finalize, the one that was started last does.
func TestMirroredLock(t *testing.T) {
	s := newStore()
	folder := t.TempDir()
	first, known := s.joined(t, t.Context(), folder, 2, map[string]int{}), map[string]int{}
	if err := errors.Join(first.Lock(t.Context()), first.Lock(t.Context())); err != nil {
		t.Fatal(err)
	}
	second := s.joined(t, t.Context(), t.TempDir(), 2, known)
	if err := second.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Lock(t.Context()); !errors.Is(err, errTaken) {
		t.Errorf("error %v", err)
	}
	var busy *atomicfile.BusyError
	if _, err := Join(t.Context(), folder, 2, 2, here, &machine{s, folder, known}); !errors.As(err, &busy) {
		t.Errorf("error %v", err)
	}
	if err := errors.Join(first.Close(), second.Lock(t.Context()), second.Close()); err != nil {
		t.Error(err)
	}
}

// Results that cannot be sent are an error of the next one, and are sent by the next process. A process that is
// interrupted sends them too; many are sent at once.
func TestSending(t *testing.T) {
	s := newStore()
	folder, known := t.TempDir(), map[string]int{}
	g := s.joined(t, t.Context(), folder, 0, known)
	s.failing = errors.New("no connection")
	if _, err := g.Add(t.Context(), "one", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(t.Context(), time.Minute, func() bool { return true }); !errors.Is(err, s.failing) {
		t.Errorf("error %v", err)
	}
	if _, err := g.Add(t.Context(), "two", []byte("2")); !errors.Is(err, s.failing) {
		t.Errorf("error %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	s.failing = nil
	ctx, interrupt := context.WithCancel(t.Context())
	g = s.joined(t, ctx, folder, 0, known)
	if _, err := g.Add(ctx, "three", []byte("3")); err != nil {
		t.Fatal(err)
	}
	interrupt()
	if err := g.Wait(ctx, time.Minute, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	for _, unit := range []string{"one", "two", "three"} {
		if !bytes.Contains(s.content["00000/journal"], []byte(unit)) {
			t.Errorf("the result of %s is not sent", unit)
		}
	}
	g = s.joined(t, t.Context(), folder, 0, known)
	if _, err := g.Add(t.Context(), "large", []byte(strings.Repeat("x", backlog))); err != nil {
		t.Fatal(err)
	}
	n := len(s.content["00000/journal"])
	if n < backlog {
		t.Errorf("%d bytes are sent", n)
	}
	if _, err := g.Add(t.Context(), "small", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if now := len(s.content["00000/journal"]); now != n {
		t.Errorf("a small result is sent at once: %d bytes after %d", now, n)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
