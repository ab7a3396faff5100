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

// paths settles where the output goes: never onto the input.
func (o *Options) paths() error {
	if o.Output == "" {
		o.Output = stem(o.Input) + "." + o.Label + ".onnx"
	}
	if o.Source == nil && same(o.Input, o.Output) {
		return pass.OptionErrorf("%s: the output is the input; name another file with --output", o.Output)
	}
	return nil
}

// located puts path in front of an error that does not start with it already, as those of
// opening do.
func located(path string, err error) error {
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

// guard refuses outputs that would take the place of one of the input's data files.
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

// reportPath is where a report of the given format goes.
func (r *run) reportPath(format string) (string, error) {
	dir := r.ReportDir
	if dir == "" {
		dir = filepath.Dir(r.path)
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(stem(r.path))+".report."+format), nil
}

// WriteFile writes a small file whole or not at all.
func WriteFile(path string, write func(*os.File) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return of(path, err)
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

// of says an error about path's temporary file of path itself.
func of(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", path, p.Err)
	}
	return err
}
