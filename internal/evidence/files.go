package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/untrusted"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// Files are the files of a model and its evidence, by slash-separated names.
type Files interface {
	// Names are the names of all files.
	Names(ctx context.Context) ([]string, error)
	// Digest is the SHA-256 of a file, in hexadecimal, and its size in bytes; fs.ErrNotExist if there is no such file.
	Digest(ctx context.Context, name string) (sum string, size int64, err error)
	// Read is the content of a document of at most MaxDocument bytes.
	Read(ctx context.Context, name string) ([]byte, error)
	// Packed are the files in a packed model with their digests; ErrAbsent if its bytes are elsewhere.
	Packed(ctx context.Context, name string) ([]report.File, error)
	// Model is a model of which the graph can be read, not the weights; ErrAbsent if its bytes are elsewhere.
	Model(ctx context.Context, name string) (report.Model, error)
}

// ErrAbsent is the error of reading a file of which only digest and size are here.
var ErrAbsent = errors.New("only the digest is here, not the content")

// MaxDocument is the maximum size of a report in bytes: that of some 5 million weights.
const MaxDocument = 2 << 30

// A Folder is the files of a folder. A pointer of Git LFS represents the file that it names.
type Folder string

// Names are the names of the regular files below the folder. Hidden folders, such as .git, are left out.
func (d Folder) Names(ctx context.Context) ([]string, error) {
	return digest.Names(ctx, string(d))
}

// Digest is computed from the content, or is that of a pointer.
func (d Folder) Digest(ctx context.Context, name string) (string, int64, error) {
	path, err := d.path(name)
	if err != nil {
		return "", 0, err
	}
	if p, ok := readPointer(path); ok {
		return p.oid, p.size, nil
	}
	return digest.File(ctx, path, nil)
}

// Read reads a document.
func (d Folder) Read(_ context.Context, name string) ([]byte, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	if _, ok := readPointer(path); ok {
		return nil, fmt.Errorf("%s: %w: it is a pointer of Git LFS", path, ErrAbsent)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := bounded.Read(f, MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// Packed decodes all files of a packed model.
func (d Folder) Packed(ctx context.Context, name string) (files []report.File, err error) {
	f, err := d.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, p := range f.Parts() {
		sum, err := p.SHA256(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		files = append(files, report.File{Name: p.Name, Bytes: p.Size, SHA256: sum})
	}
	return files, nil
}

// Model reads the graph of a model.
func (d Folder) Model(ctx context.Context, name string) (report.Model, error) {
	f, err := d.open(ctx, name)
	if err != nil {
		return report.Model{}, err
	}
	return report.Model{Path: f.Path, IR: f.Model, Metadata: f.Metadata()}, f.Close()
}

// open opens a model; ErrAbsent for a pointer.
func (d Folder) open(ctx context.Context, name string) (*onnx.File, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	if _, ok := readPointer(path); ok {
		return nil, ErrAbsent
	}
	return onnx.OpenContext(ctx, path)
}

// path is the path of a name, which a report may have from anywhere.
func (d Folder) path(name string) (string, error) {
	return untrusted.Path(string(d), name)
}

// A pointer replaces a file in Git LFS: see the specification of git-lfs, docs/spec.md.
type pointer struct {
	oid  string
	size int64
}

// maxPointer is the maximum size of a pointer in bytes.
const maxPointer = 1024

var pointerText = regexp.MustCompile(
	`\Aversion https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/v1\n(?:ext-.*\n)*` +
		`oid sha256:([0-9a-f]{64})\nsize ([0-9]+)\n\z`,
)

// IsPointer reports whether the file at path is a pointer of Git LFS.
func IsPointer(path string) bool {
	_, ok := readPointer(path)
	return ok
}

// readPointer reads a pointer. It reports false for another file, and for one that cannot be read.
func readPointer(path string) (pointer, bool) {
	st, err := os.Stat(path)
	// By its size first: this is called for each file, and models have gigabytes.
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxPointer {
		return pointer{}, false
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return pointer{}, false
	}
	m := pointerText.FindSubmatch(b)
	if m == nil {
		return pointer{}, false
	}
	size, err := strconv.ParseInt(string(m[2]), 10, 64)
	return pointer{string(m[1]), size}, err == nil
}
