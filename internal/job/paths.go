package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// paths sets the path of the output, which is never that of the input.
func (o *Options) paths() error {
	if o.Output == "" {
		o.Output = stem(o.Input) + "." + o.Label + ".onnx"
	}
	if o.Source == nil && same(o.Input, o.Output) {
		return pass.OptionErrorf("%s: the output is the input; name another file with --output", o.Output)
	}
	return nil
}

// withPath prefixes an error with path unless it starts with it already, as errors of opening do.
func withPath(path string, err error) error {
	if strings.HasPrefix(err.Error(), path+":") {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

func stem(path string) string { return strings.TrimSuffix(path, ".onnx") }

func rejected(path string) string { return stem(path) + ".rejected.onnx" }

func same(a, b string) bool {
	sa, err := os.Stat(a)
	if err != nil {
		return false
	}
	sb, err := os.Stat(b)
	return err == nil && os.SameFile(sa, sb)
}

// guard rejects outputs that would overwrite one of the input's data files.
func guard(src *onnx.File, p *onnx.Plan, path string) error {
	for _, out := range p.Paths(path) {
		for _, part := range src.Parts() {
			if same(out, filepath.Join(filepath.Dir(src.Path), filepath.FromSlash(part.Name))) {
				return pass.OptionErrorf("%s: the output would overwrite %s, which the input needs; name another file with --output", out, part.Name)
			}
		}
	}
	return nil
}

// reportPath returns the path of the report in the given format and creates its folder.
func (r *run) reportPath(format string) (string, error) {
	dir := r.ReportDir
	if dir == "" {
		dir = filepath.Dir(r.path)
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(stem(r.path))+".report."+format), nil
}

// WriteFile writes a small file atomically.
func WriteFile(path string, write func(*os.File) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return withTargetPath(path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	if err := errors.Join(tmp.Chmod(0o644), write(tmp), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// withTargetPath replaces the path of the temporary file in an error by that of the file itself.
func withTargetPath(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", path, p.Err)
	}
	return err
}
