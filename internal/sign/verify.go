package sign

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/untrusted"
)

// A Mismatch is a difference between a signature and the files.
type Mismatch struct {
	File    string `json:"file"` // in the folder, with slashes
	Problem string `json:"problem"`
}

func (m Mismatch) String() string { return m.File + ": " + m.Problem }

// ErrKey means that a signature was made with another key, or that it was changed since.
var ErrKey = errors.New("not signed with this key, or changed since")

// A Signed is the content of a signature: which files it covers.
type Signed struct {
	Files    []File
	Ignored  []string // paths of the folder that need not be covered
	Symlinks bool     // symbolic links to files were followed
}

// Verify compares files with the signature at path. Those that are signed have to be unchanged, and each of files has
// to be signed. A signature of another key is a mismatch; a file that is no signature is an error. of computes digests
// from paths; nil for those of the content.
func Verify(
	ctx context.Context,
	key *ecdsa.PublicKey,
	path string,
	files Files,
	of func(ctx context.Context, path string) (string, error),
) ([]Mismatch, error) {
	text, err := readFile(path, maxSize)
	if err != nil {
		return nil, err
	}
	s, err := Open(text, key)
	if errors.Is(err, ErrKey) {
		return []Mismatch{{filepath.Base(path), err.Error()}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.Ignored = append(s.Ignored, files.ownName(path)...)
	present, err := files.list(s.Ignored)
	if err != nil {
		return nil, err
	}
	if of == nil {
		of = func(ctx context.Context, path string) (string, error) {
			sum, _, err := digest.File(ctx, path, nil)
			return sum, err
		}
	}
	return s.Compare(ctx, present, func(ctx context.Context, name string) (string, error) {
		if err := files.check(name, s.Symlinks); err != nil {
			return "", err
		}
		return of(ctx, files.path(name))
	})
}

// maxSize is the maximum size of a signature or key: that of a folder of some million files.
const maxSize = 256 << 20

// readFile is os.ReadFile for files of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s: larger than %d bytes", path, limit)
	}
	return text, err
}

// Compare returns the differences by name: signed files whose digest by of, as digits, is another one or fails with
// fs.ErrNotExist, and files that are present, but not signed. It calls of from several goroutines.
func (s *Signed) Compare(
	ctx context.Context,
	present []string,
	of func(ctx context.Context, name string) (string, error),
) ([]Mismatch, error) {
	signed := s.byName(present)
	found, names := make([]Mismatch, len(signed)), map[string]bool{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range signed {
		names[f.Name] = true
		g.Go(func() error {
			problem, err := f.problem(ctx, of)
			found[i] = Mismatch{f.Name, problem}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(m Mismatch) bool { return m.Problem == "" })
	// A report that was added to a signed model would otherwise pass for a part of it.
	for _, name := range present {
		if !names[name] && !covers(s.Ignored, name) {
			found = append(found, Mismatch{name, "not signed"})
		}
	}
	slices.SortFunc(found, func(a, b Mismatch) int { return strings.Compare(a.File, b.File) })
	return found, nil
}

// byName are the signed files. model-signing calls a model that is signed as a single file ".".
func (s *Signed) byName(present []string) []File {
	if len(s.Files) == 1 && s.Files[0].Name == "." && len(present) > 0 {
		return []File{{present[0], s.Files[0].SHA256}}
	}
	return s.Files
}

// problem compares a file with its signed digest; empty if it is unchanged.
func (f File) problem(ctx context.Context, of func(ctx context.Context, name string) (string, error)) (string, error) {
	// Before the file is opened: a signed name may lead out of the folder.
	if _, err := untrusted.Path("", f.Name); !utf8.ValidString(f.Name) || err != nil {
		return "not a name of a file in the folder", nil
	}
	sum, err := of(ctx, f.Name)
	var kind *kindError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "signed, but missing", nil
	case errors.As(err, &kind):
		return kind.Error(), nil
	case err == nil && !strings.EqualFold(sum, f.SHA256):
		return "the content is not what was signed", nil
	}
	return "", err
}
