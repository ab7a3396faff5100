package weightcache_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/pack"
	"github.com/mcompress/mcompress/internal/weightcache"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

const k, n = 300, 130

// model writes y = x·w, where all elements of w have a value.
func model(t *testing.T, path string, value float32) {
	t.Helper()
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 2}, {N: k}}}
	m.Graph.Inputs = []*ir.Value{x}
	w := m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{k, n}},
		Source: ir.Floats(slices.Repeat([]float32{value}, k*n)...)})
	y := m.Graph.Insert(nil, "MatMul", []*ir.Value{x, w})
	y.Name = "y"
	m.Graph.AddOutput(y)
	replacement := filepath.Join(t.TempDir(), "model.onnx")
	if _, err := onnx.Save(t.Context(), m, replacement, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(replacement)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil { // in-place
		t.Fatal(err)
	}
}

// A folder is a cache with the warnings that it gave.
type folder struct {
	weightcache.Cache
	warnings []error
}

func newFolder(t *testing.T) *folder {
	c := &folder{}
	c.Dir, c.Warn = filepath.Join(t.TempDir(), "cache"), func(err error) { c.warnings = append(c.warnings, err) }
	return c
}

// run returns an element of y for x of ones.
func (c *folder) run(t *testing.T, path string) float32 {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := c.Open(t.Context(), f, engine.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	x := ir.NewArray(ir.Float, 2, k)
	for i := range ir.View[float32](x) {
		ir.View[float32](x)[i] = 1
	}
	out, err := e.Run(t.Context(), map[string]*ir.Array{"x": x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ir.View[float32](out["y"])[0]
}

// files are the names of the files with a suffix.
func (c *folder) files(t *testing.T, suffix string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(c.Dir, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func (c *folder) check(t *testing.T, what string, got, want float32, warnings, weights int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
	if len(c.warnings) != warnings {
		t.Errorf("%s: warnings %v, want %d", what, c.warnings, warnings)
	}
	if files := c.files(t, ".weights"); len(files) != weights {
		t.Errorf("%s: files %v, want %d", what, files, weights)
	}
	c.warnings = nil
}

// settle makes the digests of the cache valid, as if they had been written later.
func (c *folder) settle(t *testing.T) {
	for _, path := range c.files(t, ".digest") {
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
}

// Later sessions use the weights of the first, also those of a copy of the model, and those of a changed model never,
// even if it has the size and time of the one before.
func TestChangedModels(t *testing.T) {
	c, dir := newFolder(t), t.TempDir()
	path := filepath.Join(dir, "model.onnx")
	model(t, path, 1)
	c.check(t, "first", c.run(t, path), k, 0, 1)
	c.settle(t)
	c.check(t, "second", c.run(t, path), k, 0, 1)
	model(t, filepath.Join(dir, "copy.onnx"), 1)
	c.check(t, "copy", c.run(t, filepath.Join(dir, "copy.onnx")), k, 0, 1)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	model(t, path, 2)
	if err := os.Chtimes(path, time.Time{}, st.ModTime()); err != nil {
		t.Fatal(err)
	}
	c.settle(t)
	c.check(t, "changed", c.run(t, path), 2*k, 0, 2)
}

// The second session does not read the weights of the model.
func TestWeightsAreMapped(t *testing.T) {
	c := newFolder(t)
	path := filepath.Join(t.TempDir(), "model.onnx")
	model(t, path, 1)
	c.run(t, path)
	c.settle(t)
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for v := range f.Model.Values() {
		if v.Const != nil {
			v.Const.Source = ir.Output{} // cannot be read
		}
	}
	e, err := c.Open(t.Context(), f, engine.Options{Workers: 1})
	if err != nil || len(c.warnings) > 0 {
		t.Fatal(err, c.warnings)
	}
	e.Close()
}

// A digest that was stored within the resolution of file times after the last change of the model is not used: the
// model may have changed since.
func TestDigestsOfRecentChangesAreNotUsed(t *testing.T) {
	c := newFolder(t)
	path := filepath.Join(t.TempDir(), "model.onnx")
	model(t, path, 1)
	c.run(t, path)
	digest := c.files(t, ".digest")[0]
	state := strings.TrimSuffix(filepath.Base(digest), ".digest")
	other := []byte(state + " " + strings.Repeat("0", 64))
	for _, stored := range []struct {
		at      time.Duration // after the change
		weights int           // with the other digest the weights are packed again
	}{{time.Second, 1}, {time.Minute, 2}} {
		if err := os.WriteFile(digest, other, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(digest, time.Time{}, time.Now().Add(stored.at)); err != nil {
			t.Fatal(err)
		}
		c.check(t, stored.at.String(), c.run(t, path), k, 0, stored.weights)
	}
}

// Packed weights are not more accessible than the model, and digests are private.
func TestAccessOfCachedFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	c := newFolder(t)
	path := filepath.Join(t.TempDir(), "model.onnx")
	model(t, path, 1)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	c.run(t, path)
	for suffix, want := range map[string]os.FileMode{".weights": 0o640, ".digest": 0o600} {
		st, err := os.Stat(c.files(t, suffix)[0])
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&^want != 0 {
			t.Errorf("%s has mode %v, want at most %v", suffix, st.Mode(), want)
		}
	}
}

// Without a cache, and of a packed model, which has no weights to map, sessions open as they do otherwise.
func TestModelsThatAreNotCached(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.onnx")
	model(t, path, 1)
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var none *weightcache.Cache
	e, err := none.Open(t.Context(), f, engine.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(filepath.Dir(path), "model.mcz")
	w, err := os.Create(packed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pack.Write(t.Context(), w, []pack.File{{Name: "model.onnx", Size: int64(len(content)),
		R: bytes.NewReader(content)}}, pack.Options{})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	c := newFolder(t)
	c.check(t, "packed", c.run(t, packed), k, 1, 0)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Open(t.Context(), f, engine.Options{Workers: 1}); err == nil || e != nil {
		t.Errorf("a model whose files cannot be read: %v, %v", e, err)
	}
}

// Invalid files are replaced, with a warning.
func TestInvalidFilesAreReplaced(t *testing.T) {
	c := newFolder(t)
	path := filepath.Join(t.TempDir(), "model.onnx")
	model(t, path, 1)
	c.run(t, path)
	c.settle(t)
	file := c.files(t, ".weights")[0]
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(good)
	damaged[len(good)-100] ^= 1
	for name, content := range map[string][]byte{"damaged": damaged, "truncated": good[:len(good)/2],
		"foreign": []byte("text"), "empty": nil} {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
		c.check(t, name, c.run(t, path), k, 1, 1)
		c.check(t, name+", again", c.run(t, path), k, 0, 1)
	}
	if err := os.WriteFile(c.files(t, ".digest")[0], []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.settle(t)
	c.check(t, "digest", c.run(t, path), k, 0, 1)
}

// A folder that cannot be written is a warning.
func TestFolderThatCannotBeWritten(t *testing.T) {
	c := newFolder(t)
	path := filepath.Join(t.TempDir(), "model.onnx")
	model(t, path, 1)
	if err := os.WriteFile(c.Dir, nil, 0o644); err != nil { // a file instead of a folder
		t.Fatal(err)
	}
	c.check(t, "a file", c.run(t, path), k, 1, 0)
	if err := os.Remove(c.Dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := os.MkdirAll(filepath.Join(c.Dir, "folder"), 0o700); err != nil {
			t.Fatal(err)
		}
		c.check(t, "a folder", c.run(t, path), k, 0, 1)
	}
}

// A folder or a file that others may write, and a file that is another one's copy, do not decide what is measured.
func TestForeignCaches(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.onnx"), filepath.Join(dir, "two.onnx")
	model(t, one, 1)
	model(t, two, 2)
	chmod := func(mode os.FileMode, paths ...string) error {
		var err error
		for _, path := range paths {
			err = errors.Join(err, os.Chmod(path, mode))
		}
		return err
	}
	for name, c := range map[string]struct {
		change func(c *folder, weights string) error
		warned int
	}{
		"nothing":               {func(*folder, string) error { return nil }, 0},
		"a folder for others":   {func(c *folder, _ string) error { return chmod(0o777, c.Dir) }, 1},
		"a folder for a group":  {func(c *folder, _ string) error { return chmod(0o770, c.Dir) }, 1},
		"weights for others":    {func(_ *folder, weights string) error { return chmod(0o666, weights) }, 1},
		"a digest for others":   {func(c *folder, _ string) error { return chmod(0o666, c.files(t, ".digest")...) }, 0},
		"a folder of elsewhere": {func(c *folder, _ string) error { return os.Symlink(c.Dir, c.Dir+".link") }, 1},
		"weights of a link": {func(_ *folder, weights string) error {
			return errors.Join(os.Rename(weights, weights+".moved"), os.Symlink(weights+".moved", weights))
		}, 2}, // neither read nor replaced
	} {
		cache := newFolder(t)
		cache.check(t, name+", first", cache.run(t, one), k, 0, 1)
		cache.settle(t)
		if err := c.change(cache, cache.files(t, ".weights")[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(cache.Dir + ".link"); err == nil {
			cache.Dir += ".link"
		}
		if got := cache.run(t, one); got != k || len(cache.warnings) != c.warned {
			t.Errorf("%s: got %v and warnings %v, want %d", name, got, cache.warnings, c.warned)
		}
	}
	// The weights and digest of one model under the names of another one's.
	cache, of := newFolder(t), map[string][]string{}
	for _, path := range []string{one, two} {
		own := newFolder(t)
		own.run(t, path)
		of[path] = slices.Concat(own.files(t, ".weights"), own.files(t, ".digest"))
	}
	cache.run(t, one)
	for i, from := range of[one] {
		content, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(cache.Dir, filepath.Base(of[two][i])), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cache.settle(t)
	cache.check(t, "a copy", cache.run(t, two), 2*k, 1, 2)
}

// Sessions that start at the same time do not disturb each other.
func TestConcurrentSessions(t *testing.T) {
	shared := newFolder(t)
	path := filepath.Join(t.TempDir(), "model.onnx")
	model(t, path, 1)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			c := &folder{}
			c.Dir, c.Warn = shared.Dir, func(err error) { t.Error(err) }
			if got := c.run(t, path); got != k {
				t.Errorf("got %v", got)
			}
		})
	}
	wait.Wait()
	shared.check(t, "after", shared.run(t, path), k, 0, 1)
}
