package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// recipe is the recipe for reports. Its digest is of the content of the files that steps read, or of their names without digests.
func (o *Options) recipe() (*report.Recipe, error) {
	r := pass.Recipe{Steps: o.Steps, StripMetadata: o.Strip}
	if o.Target != nil {
		r.Target = o.Target.Name
	}
	text, err := r.Text(portable)
	if err != nil {
		return nil, err
	}
	identity := filepath.Base
	if o.Digest {
		identity = contentDigest
	}
	identified, err := r.Text(identity)
	sum := sha256.Sum256(identified)
	return &report.Recipe{SHA256: hex.EncodeToString(sum[:]), Text: string(text)}, err
}

// portable is a path as reports have it: relative to the working folder, or the name of a file outside of it.
func portable(path string) string {
	if filepath.IsLocal(path) {
		return filepath.ToSlash(filepath.Clean(path))
	}
	return filepath.Base(path)
}

// contentDigest is the SHA-256 of a file, a model with its data files, or a folder. A path that cannot be read, such as the name of an array,
// is itself: a method reports the error if it needs the file.
func contentDigest(path string) string {
	h := sha256.New()
	paths, err := filesOf(path)
	for _, p := range paths {
		if err == nil {
			err = addFile(h, path, p)
		}
	}
	if err != nil {
		return path
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// filesOf are the regular files of path, a file, model or folder, in a fixed order.
func filesOf(path string) ([]string, error) {
	if strings.HasSuffix(path, ".onnx") {
		f, err := onnx.Open(path)
		if err != nil {
			return nil, err
		}
		return f.Paths(), f.Close()
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().IsRegular() {
		return []string{path}, err
	}
	var paths []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, p)
		}
		return err
	})
	return paths, err
}

// addFile adds the name of a file below root, its size and its content.
func addFile(w io.Writer, root, path string) error {
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%q %d\n", filepath.ToSlash(name), st.Size())
	_, err = io.Copy(w, f)
	return err
}
