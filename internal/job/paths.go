package job

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// setOutputPath sets the path of the output, which is never that of the input.
func (o *Options) setOutputPath() error {
	if o.Output == "" {
		o.Output = report.Stem(o.Input) + "." + o.Label + ".onnx"
	}
	if o.DryRun && isPacked(o.Output) {
		return pass.OptionErrorf("%s: the size of a packed model is known only when it is written; a dry run requires a "+
			"name without .mcz", o.Output)
	}
	if o.Source == nil && SameFile(o.Input, o.Output) {
		return pass.OptionErrorf("%s: the output is the input; name another file with --output", o.Output)
	}
	return nil
}

// withPath prefixes an error with path unless it starts with it already, as errors of opening do.
func withPath(path string, err error) error {
	path = remote.Shown(path)
	if strings.HasPrefix(err.Error(), path+":") {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

func rejectedPath(path string) string {
	if isPacked(path) {
		return report.Stem(path) + ".rejected.mcz"
	}
	return report.Stem(path) + ".rejected.onnx"
}

// SameFile reports whether two paths or URLs name one file.
func SameFile(a, b string) bool {
	if remote.Is(a) && remote.Is(b) {
		return remote.Shown(a) == remote.Shown(b)
	}
	sa, err := os.Stat(a)
	if err != nil {
		return false
	}
	sb, err := os.Stat(b)
	return err == nil && os.SameFile(sa, sb)
}

// guardInput rejects outputs that would overwrite one of the input's data files.
func (r *run) guardInput(p *onnx.Plan) error {
	if r.Source != nil || isPacked(r.path) {
		return nil
	}
	for _, out := range p.Paths(r.path) {
		for i, part := range r.source.Paths() {
			if SameFile(out, part) {
				return pass.OptionErrorf("%s: the output would overwrite %s, which the input needs; name another file "+
					"with --output", out, r.source.Parts()[i].Name)
			}
		}
	}
	return nil
}

// reportPath returns the path of a document on the result, of which suffix is the end of the name, and creates its
// folder.
func (r *run) reportPath(suffix string) (string, error) {
	if r.ReportDir != "" {
		if err := r.set.MakeDir(r.ReportDir); err != nil {
			return "", err
		}
	}
	return r.Options.ReportPath(r.path, suffix), nil
}

// ReportPath is the path of a document on an output, of which suffix is the end of the name.
func (o *Options) ReportPath(output, suffix string) string {
	return remote.Join(cmp.Or(o.ReportDir, remote.Dir(output)), remote.Base(report.Stem(output))+suffix)
}
