package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/onnx"
)

// samplesOfModel is the number of runs that are recorded. Commands without data verify on the same one, so that their
// reports can be compared with ONNX Runtime.
const samplesOfModel = 1

// A recording are samples of a model.
type recording struct {
	data  string // folder of ONNX test data; empty if there are none
	why   string // there are none
	loads bool   // ONNX Runtime runs the model, and its outputs are in the data
	error string // of ONNX Runtime

	inputs []string // files of the first run
}

// record writes random samples of a model, which generate chooses as verify does, and ONNX Runtime's outputs.
func (s *sweep) record(ctx context.Context, m model, dir string) recording {
	f, err := onnx.Open(m.path)
	if err != nil {
		return recording{why: err.Error()}
	}
	defer f.Close()
	inputs := dataset.Inputs(f.Model.Graph)
	set, err := dataset.Generate(inputs, dataset.Random{Samples: samplesOfModel, Ranges: dataset.Ranges(f.Model)})
	if err != nil {
		return recording{why: err.Error()}
	}
	defer set.Close()
	r := recording{data: filepath.Join(dir, "data"), loads: true}
	i := 0
	for batch, err := range set.Batches(ctx, dataset.Order{}) {
		if err != nil {
			return recording{why: err.Error()}
		}
		q := recordRequest{Model: m.path, Folder: filepath.Join(r.data, "test_data_set_"+strconv.Itoa(i))}
		for _, in := range inputs {
			a := batch.Inputs[in.Name]
			if a == nil || a.Text != nil {
				return recording{why: fmt.Sprintf("input %q is no tensor of numbers", in.Name)}
			}
			q.Inputs = append(q.Inputs, recordInput{in.Name, int(a.DType), a.Shape, a.Data})
		}
		answer, err := runRecorder(ctx, s.python, q)
		if err != nil {
			return recording{why: err.Error()}
		}
		if answer != "" {
			r.loads, r.error = false, answer
		}
		if i == 0 {
			for j := range inputs {
				r.inputs = append(r.inputs, filepath.Join(q.Folder, fmt.Sprintf("input_%d.pb", j)))
			}
		}
		i++
	}
	return r
}

type recordRequest struct {
	Model, Folder string
	Inputs        []recordInput
}

type recordInput struct {
	Name  string
	DType int
	Shape []int64
	Data  []byte
}

// runRecorder runs record.py for one run of a model, and returns ONNX Runtime's error.
func runRecorder(ctx context.Context, python string, q recordRequest) (string, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, python, filepath.Join("internal", "dev", "zoo", "record.py"))
	cmd.Stdin = strings.NewReader(string(text) + "\n")
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1")
	out, err := cmd.Output()
	var a struct{ Error string }
	if jsonErr := json.Unmarshal(out, &a); jsonErr != nil {
		return "ONNX Runtime ended: " + fmt.Sprint(err), nil
	}
	return a.Error, nil
}
