package metric

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/ir"
)

// Files are the .npz files of an evaluator: outputs of the reference and of the model, by their names, and inputs and
// labels of the samples. The first axis of arrays is samples. An array whose runs differ in other axes is one array for
// each run, NAME.0, NAME.1 and so on.
type Files struct{ Reference, Candidate, Data string }

// A Value is the result of an evaluator.
type Value struct {
	Name           string  `json:"name"`
	Value          float64 `json:"value"`
	HigherIsBetter bool    `json:"higher_is_better"`
}

// An Evaluator measures the model of the candidate file. It is called with the reference in place of the candidate
// first, once for the same outputs of the reference and the same data.
type Evaluator func(ctx context.Context, f Files) (Value, error)

// Measure is the measure of the evaluator. It remembers the value of the last reference; measurements must not be
// concurrent.
func (e Evaluator) Measure() Measure { return &evaluatorMeasure{evaluate: e} }

// An evaluatorMeasure measure has an evaluator and what it returned for the last reference.
type evaluatorMeasure struct {
	evaluate  Evaluator
	reference []byte // digest of its outputs and of the data; nil before the first one
	value     Value
}

// New implements Measure.
func (e *evaluatorMeasure) New() (Scorer, error) {
	folder, err := atomicfile.NewFolder("")
	if err != nil {
		return nil, err
	}
	s := &evaluation{evaluatorMeasure: e, folder: folder}
	budget := int64(maxFiles)
	for k, name := range []string{"reference", "candidate", "data"} {
		s.archives[k] = &archive{path: filepath.Join(folder.Path, name), free: &budget}
	}
	return s, nil
}

// OfClasses implements Measure.
func (*evaluatorMeasure) OfClasses() bool { return false }

// Verbatim implements Measure.
func (*evaluatorMeasure) Verbatim() bool { return true }

// maxFiles bounds the files of an evaluator, in bytes.
const maxFiles = 8 << 30

// An evaluation writes the files of an evaluator, in a temporary folder.
type evaluation struct {
	*evaluatorMeasure
	folder   *atomicfile.Folder
	archives [3]*archive // of Files
	paired   bool
}

// Add implements Scorer.
func (e *evaluation) Add(_ context.Context, b *Batch) error {
	e.paired = b.Want != nil
	data := map[string]*ir.Array{}
	for name, a := range b.Inputs {
		data[name] = a
	}
	if b.Labels != nil {
		data["labels"] = b.Labels
	}
	for k, arrays := range []map[string]*ir.Array{b.Want, b.Got, data} {
		if err := e.archives[k].add(arrays, b.N); err != nil {
			return fmt.Errorf("evaluator: %w", err)
		}
	}
	return nil
}

// Score implements Scorer.
func (e *evaluation) Score(ctx context.Context) (Score, error) {
	var paths [3]string
	for k, a := range e.archives {
		var err error
		if paths[k], err = a.finish(); err != nil {
			return Score{}, fmt.Errorf("evaluator: %w", err)
		}
	}
	// Without a reference the candidate takes its place.
	f := Files{Reference: paths[1], Candidate: paths[1], Data: paths[2]}
	s := Score{Before: math.NaN(), Error: math.NaN()}
	var before Value
	if e.paired {
		var err error
		f.Reference = paths[0]
		if before, err = e.ofReference(ctx, f); err != nil {
			return s, err
		}
		s.Before = before.Value
	}
	after, err := e.call(ctx, f)
	if err != nil {
		return s, err
	}
	if e.paired && (before.Name != after.Name || before.HigherIsBetter != after.HigherIsBetter) {
		return s, fmt.Errorf("evaluator: it returned %q for the reference and %q for the other model, or different "+
			"directions", before.Name, after.Name)
	}
	s.Name, s.HigherIsBetter, s.After = after.Name, after.HigherIsBetter, after.Value
	return s, nil
}

// ofReference is the value of the reference.
func (e *evaluatorMeasure) ofReference(ctx context.Context, f Files) (Value, error) {
	digest, err := digestOf(f.Reference, f.Data)
	if err != nil || bytes.Equal(digest, e.reference) {
		return e.value, err
	}
	v, err := e.call(ctx, Files{Reference: f.Reference, Candidate: f.Reference, Data: f.Data})
	if err == nil {
		e.reference, e.value = digest, v
	}
	return v, err
}

// digestOf is the SHA-256 of files.
func digestOf(paths ...string) ([]byte, error) {
	all := sha256.New()
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		// The digest of each file has a fixed size, so that bytes cannot move between files unnoticed.
		one := sha256.New()
		_, err = io.Copy(one, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		all.Write(one.Sum(nil))
	}
	return all.Sum(nil), nil
}

// call runs the evaluator and checks its result.
func (e *evaluatorMeasure) call(ctx context.Context, f Files) (Value, error) {
	v, err := e.evaluate(ctx, f)
	switch {
	case err != nil:
	case v.Name == "" || len(v.Name) > maxName:
		err = fmt.Errorf("the name of the metric must have 1 to %d characters", maxName)
	case math.IsNaN(v.Value) || math.IsInf(v.Value, 0):
		err = errors.New("the value is not a finite number")
	}
	if err != nil {
		return v, fmt.Errorf("evaluator: %w", err)
	}
	return v, nil
}

// maxName bounds the name that an evaluator returns.
const maxName = 100

// Close implements Scorer.
func (e *evaluation) Close() error {
	var errs []error
	for _, a := range e.archives {
		errs = append(errs, a.close())
	}
	return errors.Join(append(errs, e.folder.Close())...)
}
