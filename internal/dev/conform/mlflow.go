package conform

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

//go:embed mlflow_server.py
var mlflowServer string

//go:embed mlflow_client.py
var mlflowClient string

// The administrator of the server of MLflow, and a user who may only read, with the same password.
const (
	MLflowUser     = "admin"
	MLflowReader   = "reader"
	MLflowPassword = "correct-horse-battery"
)

// An mlflowRun is the server of a test binary.
type mlflowRun struct {
	python, folder, address string
	input                   io.Closer // its end is that of the server
	err                     error
}

// mlflowServerOf starts the server once. It ends with the binary, whose end closes its input.
var mlflowServerOf = sync.OnceValue(func() (r mlflowRun) {
	if r.python, r.err = fromEnv("MCOMPRESS_MLFLOW_PYTHON",
		filepath.Join(".venv-mlflow", "bin", "python")); r.err != nil {
		r.err = fmt.Errorf("no Python with MLflow (%w); `make test` makes one", r.err)
		return r
	}
	if r.folder, r.err = os.MkdirTemp(inMemory(), "mlflow"); r.err != nil {
		return r
	}
	c := Command(r.python, "-c", mlflowServer, r.folder)
	c.Stderr = os.Stderr
	var err error
	if r.input, err = c.StdinPipe(); err != nil {
		r.err = err
		return r
	}
	out, err := c.StdoutPipe()
	if err != nil {
		r.err = err
		return r
	}
	if r.err = c.Start(); r.err != nil {
		return r
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		r.err = fmt.Errorf("the server of MLflow did not start: %w", err)
	}
	r.address = strings.TrimSpace(line)
	return r
})

// inMemory is a folder in memory: the server waits for its disk at every request. Empty where there is none.
func inMemory() string {
	const folder = "/dev/shm"
	if st, err := os.Stat(folder); err != nil || !st.IsDir() {
		return ""
	}
	return folder
}

// MLflow returns the address of the tracking server of all tests of a binary.
func MLflow(t testing.TB) string {
	t.Helper()
	r := mlflowServerOf()
	if r.err != nil {
		missing(t, r.err)
	}
	return r.address
}

// An MLflowModel is what a client of MLflow reads of a version.
type MLflowModel struct {
	Accuracy    float64
	Description string
	Version     string
	Tags        map[string]string
	Run, Model  struct {
		Status  string
		Metrics map[string]float64
		Params  map[string]string
	}
	Inputs, Outputs []map[string]any
}

// LoadMLflow loads a registered model by an alias with mlflow.pyfunc, and measures its accuracy on the samples of an
// .npz.
func LoadMLflow(t testing.TB, name, alias, npz, labels string) MLflowModel {
	t.Helper()
	address := MLflow(t)
	c := Command(mlflowServerOf().python, "-c", mlflowClient, address, name, alias, npz, labels)
	c.Env = append(c.Env, "MLFLOW_TRACKING_USERNAME="+MLflowUser, "MLFLOW_TRACKING_PASSWORD="+MLflowPassword,
		"MLFLOW_DISABLE_TELEMETRY=true")
	var stderr strings.Builder
	c.Stderr = &stderr
	text, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var m MLflowModel
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
