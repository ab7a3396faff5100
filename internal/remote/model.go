package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/mcompress/mcompress/onnx"
)

// OpenModel opens the model at a path or URL. The data files of one at a URL are next to it.
func OpenModel(ctx context.Context, path string) (*onnx.File, error) {
	if !Is(path) {
		return onnx.OpenContext(ctx, path)
	}
	loc, err := parse(path)
	if err != nil {
		return nil, err
	}
	return processSettings().openModel(ctx, loc, pool())
}

func (s *settings) openModel(ctx context.Context, loc location, b *buffers) (*onnx.File, error) {
	return (&folder{ctx: ctx, settings: s, buffers: b, model: loc}).openModel(ctx)
}

// ModelTag identifies the files of a model at a URL by their names, sizes and ETags, without reading payloads. It is
// empty if a file has no strong ETag.
func ModelTag(ctx context.Context, url string) (string, error) {
	loc, err := parse(url)
	if err != nil {
		return "", err
	}
	files := &folder{ctx: ctx, settings: processSettings(), buffers: pool(), model: loc}
	f, err := files.openModel(ctx)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, o := range files.opened {
		if o.tag.etag == "" || strings.HasPrefix(o.tag.etag, "W/") {
			return "", f.Close()
		}
		fmt.Fprintf(h, "%q %d %s\n", Base(o.path), o.size, o.tag.etag)
	}
	return hex.EncodeToString(h.Sum(nil)), f.Close()
}

// openModel opens the model.
func (f *folder) openModel(ctx context.Context) (*onnx.File, error) {
	model, err := onnx.OpenAt(ctx, f, Base(f.model.text), Shown(f.model.text))
	if err != nil {
		var e *Error
		if errors.As(err, &e) && e.Path == Shown(f.model.text) {
			return nil, e // the path would be in the text twice
		}
		return nil, err
	}
	// The payloads of a packed model are in records, which are read in another order.
	if model.Packed() {
		return model, nil
	}
	payloads := make([][][2]int64, len(f.opened))
	for _, p := range model.Payloads() {
		payloads[p.Part] = append(payloads[p.Part], [2]int64{p.Offset, p.Bytes()})
	}
	for i, p := range payloads {
		f.opened[i].Plan(p)
	}
	return model, nil
}

// A folder is the files next to a model.
type folder struct {
	ctx      context.Context
	settings *settings
	buffers  *buffers
	model    location
	opened   []*File // the model first
}

// Open implements fs.FS.
func (f *folder) Open(name string) (fs.File, error) {
	loc := f.model
	// The first file that is opened is the model, whose URL is given; its data files are next to it.
	if len(f.opened) > 0 {
		if name == "." || !fs.ValidPath(name) {
			return nil, &fs.PathError{Op: "open", Path: path.Clean(name), Err: fs.ErrInvalid}
		}
		loc = f.model.next(name)
	}
	file, err := f.settings.open(f.ctx, loc, f.buffers)
	if err != nil {
		return nil, err
	}
	f.opened = append(f.opened, file)
	return file, nil
}

// A Reader is an open file, on disk or at a URL.
type Reader interface {
	io.ReaderAt
	io.Closer
}

// OpenFile opens a regular file at a path or URL, and returns its size.
func OpenFile(ctx context.Context, path string) (Reader, int64, error) {
	if Is(path) {
		f, err := Open(ctx, path)
		if err != nil {
			return nil, 0, err
		}
		return f, f.size, nil
	}
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, 0, err
	case !st.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s: not a regular file", path) // opening a pipe blocks
	}
	f, err := os.Open(path)
	return f, st.Size(), err
}

// ReadFile reads a file at a path or URL of at most max bytes.
func ReadFile(ctx context.Context, path string, max int64) ([]byte, error) {
	r, size, err := OpenFile(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > max {
		return nil, fmt.Errorf("%s: %d bytes, more than %d", Shown(path), size, max)
	}
	return io.ReadAll(io.NewSectionReader(r, 0, size)) // memory as bytes arrive: the size is what the server states
}
