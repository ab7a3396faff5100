package job

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// Compare reports on two existing models: o.Input and its compressed version, o.Output. The steps between them are
// unknown; tensors are matched by name.
func Compare(ctx context.Context, o Options) (_ *Result, err error) {
	o.setDefaults()
	r := &run{Options: &o, observe: report.Observe(o.Workers), eval: ir.NewEval(""), set: &atomicfile.Set{Sync: true},
		path: comparisonPath(o.Input, o.Output)}
	defer func() { err = errors.Join(err, r.close()) }()
	if r.source, err = onnx.OpenContext(ctx, o.Input); err != nil {
		return nil, withPath(o.Input, err)
	}
	if r.work, err = onnx.OpenContext(ctx, o.Output); err != nil {
		return nil, withPath(o.Output, err)
	}
	if r.set.Access, err = atomicfile.Like(append(r.source.Paths(), r.work.Paths()...)...); err != nil {
		return nil, err
	}
	res, err := r.compareFiles(ctx)
	if err != nil {
		return nil, err
	}
	return res, r.publish(ctx)
}

// comparisonPath names the reports of a comparison differently from those of the run that wrote the second model.
func comparisonPath(a, b string) string {
	return report.Stem(b) + ".vs." + filepath.Base(report.Stem(a)) + ".onnx"
}

func (r *run) compareFiles(ctx context.Context) (*Result, error) {
	in := r.reportInput()
	var err error
	if in.Source.Files, err = r.filesWithDigests(ctx, r.source); err != nil {
		return nil, withPath(r.Input, err)
	}
	in.Result = report.Model{Path: r.Output, IR: r.work.Model, Metadata: r.work.Metadata()}
	if in.Result.Files, err = r.filesWithDigests(ctx, r.work); err != nil {
		return nil, withPath(r.Output, err)
	}
	// The second model may compute a weight from others, as dequantized ones; its error is that of the result.
	in.Errors, in.Expression = true, (&expressions{workers: r.Workers, limits: r.Limits}).tensor
	in.Environment = r.observe()
	res := &Result{Input: r.Input, Output: r.Output}
	if res.Report, err = report.Build(ctx, in); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Output, err)
	}
	res.Rejected = !res.Report.Passed()
	return res, r.writeReports(ctx, res)
}

// filesWithDigests returns the files of f with their digests.
func (r *run) filesWithDigests(ctx context.Context, f *onnx.File) ([]report.File, error) {
	sums, err := startDigests(ctx, f, r.Digest, nil).wait()
	return files(f, sums), err
}
