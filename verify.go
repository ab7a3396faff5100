package mcompress

import (
	"context"

	"github.com/mcompress/mcompress/report/verification"
)

// Verify runs the models at paths a and b on the same samples and compares their outputs: SQNR, cosine similarity, maximum absolute
// error and top-1 agreement of each, and the accuracy of both models if the samples have labels. Of the options it uses WithData,
// WithTestData, WithMemoryLimit, WithMaxSteps and WithWorkers. Without a memory limit, that of a model is raised if it needs more and the
// machine has it, and Notes of the result has a note.
func Verify(ctx context.Context, a, b string, options ...Option) (*verification.Result, error) {
	first, err := Open(a)
	if err != nil {
		return nil, err
	}
	defer first.Close()
	second, err := Open(b)
	if err != nil {
		return nil, err
	}
	defer second.Close()
	return first.Verify(ctx, second, options...)
}

// Verify is the function Verify for open models: other is compared with m.
func (m *Model) Verify(ctx context.Context, other *Model, options ...Option) (*verification.Result, error) {
	v, err := settingsOf(options).verification()
	if err != nil {
		return nil, err
	}
	return v.Compare(ctx, m.file, other.file)
}

func settingsOf(options []Option) *settings {
	s := &settings{}
	for _, o := range options {
		if o != nil {
			o(s)
		}
	}
	return s
}
