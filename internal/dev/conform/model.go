package conform

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Parses reports why the file is not a protobuf that ONNX parses. External data is
// not read.
func (w *Worker) Parses(path string) error {
	return w.call("parses", map[string]any{"path": path}, nil)
}

// Check runs onnx.checker on the file, external data included; full adds strict
// shape inference.
func (w *Worker) Check(path string, full bool) error {
	return w.call("check", map[string]any{"path": path, "full": full}, nil)
}

// Equal reports the first difference between two models as protobuf messages, field
// presence and unknown fields included. External data counts as if it were in
// raw_data.
func (w *Worker) Equal(a, b string) error { return w.equal(a, b, "loaded") }

// EqualReferences is Equal without reading external data: references must be the
// same. It is for models whose data is missing.
func (w *Worker) EqualReferences(a, b string) error { return w.equal(a, b, "referenced") }

// EqualValues is Equal where a typed field (float_data, …) counts as the raw_data
// that it means. It is for models of which only one keeps its data outside.
func (w *Worker) EqualValues(a, b string) error { return w.equal(a, b, "values") }

func (w *Worker) equal(a, b, payloads string) error {
	var difference string
	args := map[string]any{"a": a, "b": b, "payloads": payloads}
	if err := w.call("equal", args, &difference); err != nil {
		return err
	}
	if difference != "" {
		return errors.New(difference)
	}
	return nil
}

// GenerateSet writes into dir a set of models that together use every type, field and
// encoding of the format, and returns their paths, sorted. All parse; some are not
// valid, which Check reports. Names with three parts, NAME.STYLE.onnx, hold the model
// NAME.onnx in another encoding.
func (w *Worker) GenerateSet(dir string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	if err := w.call("generate", map[string]any{"folder": dir}, &paths); err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("generate: no models in %s", dir)
	}
	return paths, nil
}

// Versions returns the versions of the worker's packages, by name.
func (w *Worker) Versions() (map[string]string, error) {
	var versions map[string]string
	err := w.call("versions", map[string]any{}, &versions)
	return versions, err
}
