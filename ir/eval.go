package ir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// spoolAbove is the size from which an intermediate result is stored in a file: below
// it a buffer is cheaper, above it memory would grow with the model.
const spoolAbove = 1 << 20

// CopyBuffer is the size of the blocks in which payloads are read and written:
// larger ones are not faster, and two fit into a core's second-level cache.
const CopyBuffer = 1 << 20

// An Eval opens tensors. Results that a further recipe needs are computed once:
// small ones are kept in memory, larger ones in temporary files of dir.
type Eval struct {
	dir string

	mu      sync.Mutex
	results map[*Recipe]*result
	files   []*os.File
}

type result struct {
	once sync.Once
	outs []io.ReaderAt
	err  error
}

// NewEval returns an Eval that spools into dir, or into the system's temporary
// folder where dir is empty. The caller closes it.
func NewEval(dir string) *Eval {
	return &Eval{dir: dir, results: map[*Recipe]*result{}}
}

// Open returns t's payload. It costs nothing for a payload in a file or in memory
// and for views; any other recipe runs at its first Open.
func (e *Eval) Open(ctx context.Context, t *Tensor) (io.ReaderAt, error) { return e.open(ctx, t, 0) }

// maxDepth is the maximum number of lazy tensors that one is computed from, one after another.
const maxDepth = 4096

func (e *Eval) open(ctx context.Context, t *Tensor, depth int) (io.ReaderAt, error) {
	// A model controls the depth of this recursion, and a stack overflow would end the program.
	if depth > maxDepth {
		return nil, fmt.Errorf("tensor %q is computed in more than %d steps", t.Name, maxDepth)
	}
	switch s := t.Source.(type) {
	case Mem:
		return bytes.NewReader(s), nil
	case Span:
		return io.NewSectionReader(s.R, s.Off, t.Bytes()), nil
	case Output:
		if s.Of.View != nil {
			return e.view(ctx, s.Of, depth)
		}
		return e.output(ctx, s, depth)
	}
	return nil, fmt.Errorf("tensor %q has no payload that can be read", t.Name)
}

// ReadAll returns t's payload; it is for small tensors.
func (e *Eval) ReadAll(ctx context.Context, t *Tensor) ([]byte, error) {
	r, err := e.Open(ctx, t)
	if err != nil {
		return nil, err
	}
	b := make([]byte, t.Bytes())
	if err := ReadFull(r, b, 0); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return b, nil
}

// ReadFull fills b from off. A payload that is too short is an error.
func ReadFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("payload ends %d bytes early: %w", len(b)-n, io.ErrUnexpectedEOF)
	}
	return err
}

// Run runs r into out, one writer an output, and checks that each got exactly the
// bytes its Spec declares.
func (e *Eval) Run(ctx context.Context, r *Recipe, out []io.Writer) error {
	return e.checked(ctx, r, out, 0)
}

func (e *Eval) checked(ctx context.Context, r *Recipe, out []io.Writer, depth int) error {
	counted := make([]*counter, len(r.Out))
	ws := make([]io.Writer, len(r.Out))
	for i := range r.Out {
		counted[i] = &counter{w: out[i]}
		ws[i] = counted[i]
	}
	if err := e.runRecipe(ctx, r, ws, depth); err != nil {
		return fmt.Errorf("%s: tensor %q: %w", r.Name, r.Out[0].Name, err)
	}
	for i, s := range r.Out {
		// The writer has laid out the file by declared sizes: others would move every tensor after this one.
		if counted[i].n != s.Bytes() {
			return fmt.Errorf("%s: tensor %q: %w", r.Name, s.Name, Bugf("wrote %d bytes, declared %d", counted[i].n, s.Bytes()))
		}
	}
	return nil
}

func (e *Eval) runRecipe(ctx context.Context, r *Recipe, out []io.Writer, depth int) (err error) {
	defer Guard(&err)
	if r.View != nil {
		v, err := e.view(ctx, r, depth)
		if err != nil {
			return err
		}
		return Copy(ctx, out[0], v, r.Out[0].Bytes())
	}
	in, err := e.inputs(ctx, r, depth)
	if err != nil {
		return err
	}
	return r.Run(ctx, in, out)
}

// Copy writes the first n bytes of r to w in blocks, and stops when ctx ends.
func Copy(ctx context.Context, w io.Writer, r io.ReaderAt, n int64) error {
	buf := make([]byte, min(n, CopyBuffer))
	for off := int64(0); off < n; off += int64(len(buf)) {
		buf = buf[:min(n-off, int64(len(buf)))]
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := ReadFull(r, buf, off); err != nil {
			return err
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// ContextWriter returns a writer to w that fails when ctx ends.
func ContextWriter(ctx context.Context, w io.Writer) io.Writer { return contextWriter{ctx, w} }

type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c contextWriter) Write(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.w.Write(b)
}

// Close removes the temporary files.
func (e *Eval) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, f := range e.files {
		errs = append(errs, f.Close())
		if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	e.files = nil
	clear(e.results)
	return errors.Join(errs...)
}

// Temp returns a new temporary file for data that need not stay in memory. Close deletes it.
func (e *Eval) Temp() (*os.File, error) {
	f, err := os.CreateTemp(e.dir, ".mcompress-spool-*")
	if err != nil {
		return nil, err
	}
	// Unlinked at once where the system allows it, so that it is removed even after a kill.
	_ = os.Remove(f.Name())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.files = append(e.files, f)
	return f, nil
}

func (e *Eval) inputs(ctx context.Context, r *Recipe, depth int) ([]io.ReaderAt, error) {
	in := make([]io.ReaderAt, len(r.In))
	for i, t := range r.In {
		var err error
		if in[i], err = e.open(ctx, t, depth+1); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (e *Eval) view(ctx context.Context, r *Recipe, depth int) (io.ReaderAt, error) {
	in, err := e.inputs(ctx, r, depth)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(r.View(in), 0, r.Out[0].Bytes()), nil
}

func (e *Eval) output(ctx context.Context, o Output, depth int) (io.ReaderAt, error) {
	e.mu.Lock()
	res := e.results[o.Of]
	if res == nil {
		res = &result{}
		e.results[o.Of] = res
	}
	e.mu.Unlock()
	// Out of the lock: other recipes run at the same time, and a recipe opens the results of others.
	res.once.Do(func() { res.err = e.keep(ctx, o.Of, res, depth) })
	if res.err != nil {
		return nil, res.err
	}
	return res.outs[o.Index], nil
}

// keep runs r and holds on to every output.
func (e *Eval) keep(ctx context.Context, r *Recipe, res *result, depth int) error {
	ws := make([]io.Writer, len(r.Out))
	for i, s := range r.Out {
		if s.Bytes() < spoolAbove {
			b := &memory{}
			ws[i], res.outs = b, append(res.outs, b)
			continue
		}
		f, err := e.Temp()
		if err != nil {
			return err
		}
		ws[i], res.outs = f, append(res.outs, io.NewSectionReader(f, 0, s.Bytes()))
	}
	return e.checked(ctx, r, ws, depth)
}

type memory struct{ b []byte }

func (m *memory) Write(p []byte) (int, error) {
	m.b = append(m.b, p...)
	return len(p), nil
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m.b).ReadAt(p, off)
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
