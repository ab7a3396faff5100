package ir

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func mem(b ...byte) *Tensor {
	return &Tensor{Spec: Spec{Name: "in", DType: Uint8, Shape: []int64{int64(len(b))}}, Source: Mem(b)}
}

// repeat is a recipe whose output is its one-byte input n times; runs counts.
func repeat(in *Tensor, n int64, runs *atomic.Int32) *Tensor {
	r := &Recipe{Name: "repeat", In: []*Tensor{in}, Out: []Spec{{Name: "out", DType: Uint8, Shape: []int64{n}}}}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		runs.Add(1)
		var b [1]byte
		if err := ReadFull(in[0], b[:], 0); err != nil {
			return err
		}
		_, err := out[0].Write(bytes.Repeat(b[:], int(n)))
		return err
	}
	return r.Derive()[0]
}

func closing(t *testing.T, e *Eval) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestEvalOpensEverySource(t *testing.T) {
	e := NewEval(t.TempDir())
	defer closing(t, e)
	var runs atomic.Int32
	span := &Tensor{Spec: Spec{DType: Uint8, Shape: []int64{3}}, Source: Span{R: strings.NewReader("0123456789"), Off: 4}}
	for name, tt := range map[string]struct {
		tensor *Tensor
		want   string
	}{
		"memory": {mem('a', 'b'), "ab"},
		"span":   {span, "456"},
		"recipe": {repeat(mem('z'), 4, &runs), "zzzz"},
	} {
		got, err := e.ReadAll(context.Background(), tt.tensor)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		r, err := e.Open(context.Background(), tt.tensor)
		if err != nil {
			t.Fatal(err)
		}
		beyond := make([]byte, len(tt.want)+1)
		if n, err := r.ReadAt(beyond, 0); n != len(tt.want) || err != io.EOF {
			t.Errorf("%s: read %d bytes of %d (%v)", name, n, len(tt.want), err)
		}
	}
	if _, err := e.Open(context.Background(), &Tensor{Spec: Spec{Name: "s", DType: String}}); err == nil ||
		!strings.Contains(err.Error(), `"s"`) {
		t.Errorf("a tensor without a source: %v", err)
	}
}

func TestSpanThatIsShort(t *testing.T) {
	e := NewEval(t.TempDir())
	defer closing(t, e)
	short := &Tensor{Spec: Spec{Name: "w", DType: Uint8, Shape: []int64{8}},
		Source: Span{R: strings.NewReader("0123456789"), Off: 4}}
	_, err := e.ReadAll(context.Background(), short)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), `"w"`) ||
		!strings.Contains(err.Error(), "2 bytes") {
		t.Errorf("got %v", err)
	}
}

// Large results lie in a file that Close removes, small ones in memory.
func TestResultsAreSpooled(t *testing.T) {
	for _, tt := range []struct {
		size   int64
		inFile bool
	}{{spoolAbove - 1, false}, {spoolAbove, true}, {3 * spoolAbove, true}} {
		dir := t.TempDir()
		e := NewEval(dir)
		var runs atomic.Int32
		out := repeat(mem('x'), tt.size, &runs)
		b, err := e.ReadAll(context.Background(), out)
		if err != nil || !bytes.Equal(b, bytes.Repeat([]byte{'x'}, int(tt.size))) {
			t.Errorf("%d bytes: %d came back (%v)", tt.size, len(b), err)
		}
		if files := len(e.files); (files == 1) != tt.inFile {
			t.Errorf("%d bytes: %d files", tt.size, files)
		}
		closing(t, e)
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
			t.Errorf("Close left %v", left)
		}
	}
}

func TestSpoolFolderThatIsMissing(t *testing.T) {
	e := NewEval(filepath.Join(t.TempDir(), "none"))
	defer closing(t, e)
	var runs atomic.Int32
	if _, err := e.Open(context.Background(), repeat(mem('x'), spoolAbove, &runs)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// Concurrent reads share one run, and further reads cost none.
func TestARecipeRunsOnce(t *testing.T) {
	e := NewEval(t.TempDir())
	defer closing(t, e)
	var first, second atomic.Int32
	mid := repeat(mem('y'), 1, &first)
	out := repeat(mid, 3, &second)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, tensor := range []*Tensor{mid, out} {
				if _, err := e.ReadAll(context.Background(), tensor); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if first.Load() != 1 || second.Load() != 1 {
		t.Errorf("the recipes ran %d and %d times", first.Load(), second.Load())
	}
}

// A view is computed as it is read; nothing runs and nothing is kept.
func TestViews(t *testing.T) {
	dir := t.TempDir()
	e := NewEval(dir)
	defer closing(t, e)
	r := &Recipe{Name: "shift", In: []*Tensor{mem(1, 2, 3)}, Out: []Spec{{DType: Uint8, Shape: []int64{2}}}}
	r.View = func(in []io.ReaderAt) io.ReaderAt { return io.NewSectionReader(in[0], 1, 2) }
	r.Run = func(context.Context, []io.ReaderAt, []io.Writer) error {
		t.Error("a recipe with a view was run")
		return nil
	}
	tensor := r.Derive()[0]
	b, err := e.ReadAll(context.Background(), tensor)
	if err != nil || !bytes.Equal(b, []byte{2, 3}) {
		t.Errorf("read %v, %v", b, err)
	}
	var w bytes.Buffer
	if err := e.Run(context.Background(), r, []io.Writer{&w}); err != nil || !bytes.Equal(w.Bytes(), []byte{2, 3}) {
		t.Errorf("ran to %v, %v", w.Bytes(), err)
	}
	if len(e.results) != 0 {
		t.Error("a view was kept")
	}
}

// Run gives each output exactly the bytes it declares, or reports the one that it did not.
func TestRunCountsBytes(t *testing.T) {
	e := NewEval(t.TempDir())
	defer closing(t, e)
	for _, tt := range []struct {
		wrote [2]int
		want  string
	}{{[2]int{2, 3}, ""}, {[2]int{1, 3}, `"a": internal error: wrote 1 bytes, declared 2`},
		{[2]int{2, 4}, `"b": internal error: wrote 4 bytes, declared 3`}, {[2]int{0, 0}, `"a"`}} {
		r := &Recipe{Name: "two", Out: []Spec{{Name: "a", DType: Uint8, Shape: []int64{2}},
			{Name: "b", DType: Int4, Shape: []int64{6}}}}
		r.Run = func(_ context.Context, _ []io.ReaderAt, out []io.Writer) error {
			for i, n := range tt.wrote {
				if _, err := out[i].Write(make([]byte, n)); err != nil {
					return err
				}
			}
			return nil
		}
		err := e.Run(context.Background(), r, []io.Writer{io.Discard, io.Discard})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v bytes: got %v, want %q", tt.wrote, err, tt.want)
		}
	}
}

func TestRecipeErrorsNameRecipeAndTensor(t *testing.T) {
	e := NewEval(t.TempDir())
	defer closing(t, e)
	broken := errors.New("broken")
	r := &Recipe{Name: "quantize", Out: []Spec{{Name: "w", DType: Uint8, Shape: []int64{1}}}}
	r.Run = func(context.Context, []io.ReaderAt, []io.Writer) error { return broken }
	_, err := e.Open(context.Background(), r.Derive()[0])
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), `quantize: tensor "w": `) {
		t.Errorf("got %v", err)
	}
}

func TestCopyStopsWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	written := int64(0)
	w := writerFunc(func(b []byte) (int, error) {
		written += int64(len(b))
		cancel()
		return len(b), nil
	})
	err := Copy(ctx, w, zeroes{}, 10*CopyBuffer)
	if !errors.Is(err, context.Canceled) || written != CopyBuffer {
		t.Errorf("%d bytes were written, then %v", written, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

type zeroes struct{}

func (zeroes) ReadAt(b []byte, _ int64) (int, error) {
	clear(b)
	return len(b), nil
}

// Views of views are read by recursion, which is bounded.
func TestDepthOfLazyTensorsIsBounded(t *testing.T) {
	spec := Spec{Name: "w", DType: Uint8, Shape: []int64{1}}
	last := &Tensor{Spec: spec, Source: Mem{1}}
	e := NewEval("")
	defer e.Close()
	for i := range maxDepth + 1 {
		if i == maxDepth {
			if _, err := e.Open(t.Context(), last); err != nil {
				t.Error(err)
			}
		}
		r := &Recipe{Name: "same", In: []*Tensor{last}, Out: []Spec{spec}, View: func(in []io.ReaderAt) io.ReaderAt {
			return in[0]
		}}
		last = &Tensor{Spec: spec, Source: Output{r, 0}}
	}
	if _, err := e.Open(t.Context(), last); err == nil || !strings.Contains(err.Error(), "computed in more than") {
		t.Errorf("got %v", err)
	}
}
