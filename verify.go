package mcompress

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// A Comparison is the result of running two models on the same samples, or one on recorded outputs.
type Comparison struct {
	*verification.Result
	Gates []report.Gate // evaluated, in the order of the request
}

// Passed reports whether all gates hold, and recorded outputs are within the tolerances.
func (c *Comparison) Passed() bool { return c.Beyond == "" && report.Passed(c.Gates) }

// Verify runs the models at paths a and b on the same samples and compares their outputs: SQNR, cosine similarity,
// maximum absolute error and top-1 agreement of each, and the accuracy of both models if the samples have labels. It is
// Request.Verify for the options.
func Verify(ctx context.Context, a, b string, options ...Option) (*Comparison, error) {
	r := Request{}
	for _, o := range options {
		if o != nil {
			o(&r)
		}
	}
	r.Models = []string{a, b}
	return r.Verify(ctx)
}

// Verify compares the second model of the request with the first one, or the first one alone with the outputs that the
// data have. Of the request it uses Data, Verification, Gates on runs and Limits. Without a limit of memory, that of a
// model is raised if it needs more and the machine has it, and Notes of the result has a note.
func (r Request) Verify(ctx context.Context) (*Comparison, error) {
	return r.runs(func(v job.Verification) (*verification.Result, error) {
		second := ""
		if len(r.Models) > 1 {
			second = r.Models[1]
		}
		return job.Verify(ctx, r.Models[0], second, v)
	})
}

// Verify is Request.Verify for open models: other is compared with m. The request has no Models.
func (m *Model) Verify(ctx context.Context, other *Model, r Request) (*Comparison, error) {
	if err := errors.Join(m.check(), other.check()); err != nil {
		return nil, err
	}
	if len(r.Models) > 0 {
		return nil, fieldErrorf("{Models} are those that are open")
	}
	r.Models = []string{m.file.Path, other.file.Path}
	return r.runs(func(v job.Verification) (*verification.Result, error) { return v.Compare(ctx, m.file, other.file) })
}

// runs checks the request, runs the models and evaluates the gates.
func (r Request) runs(run func(job.Verification) (*verification.Result, error)) (*Comparison, error) {
	if r = r.Defaults(); r.Verification.Skip {
		return nil, fieldErrorf("{Verification.Skip} leaves nothing to do")
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	for _, g := range r.Gates {
		if report.KindOf(g.Name) == report.OnFiles {
			return nil, fieldErrorf("{Gates.%s} is on files, not on runs", g.Name)
		}
	}
	if len(r.Models) > 2 {
		return nil, fieldErrorf("{Models}: two models are compared, not %d", len(r.Models))
	}
	v, err := r.verification()
	if err != nil {
		return nil, err
	}
	c := &Comparison{}
	if c.Result, err = run(*v); err != nil {
		return nil, err
	}
	c.Gates, err = report.EvaluateGates(c.Result, r.Gates)
	return c, err
}

// Compare reports on two models without running them: sizes, and each weight of the first model of the request with
// that of the second one. Of the request it uses Gates on files, Reports and Limits; reports are
// NAME_OF_B.vs.NAME_OF_A.
func (r Request) Compare(ctx context.Context) (*Result, error) {
	r = r.Defaults()
	r.Verification.Skip = true
	if err := r.Check(); err != nil {
		return nil, err
	}
	if len(r.Models) != 2 {
		return nil, fieldErrorf("{Models}: two models are compared, not %d", len(r.Models))
	}
	card, err := r.Reports.Card()
	if err != nil {
		return nil, err
	}
	res, err := job.Compare(ctx, job.Options{
		Input: r.Models[0], Output: r.Models[1], Workers: r.Limits.Workers, Limits: r.Limits.run(),
		Digest: !r.Reports.NoDigests,
		Gates:  r.Gates, Reports: r.Reports.Formats, ReportDir: r.Reports.Dir, Card: card,
	})
	if err != nil {
		return nil, err
	}
	if res.Rejected {
		return nil, &RejectedError{resultOf(res, nil)}
	}
	return resultOf(res, nil), nil
}
