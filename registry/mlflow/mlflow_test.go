package mlflow

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/registry"
)

// trackingServer sets the credentials of the administrator and returns the host of the server.
func trackingServer(t *testing.T) string {
	t.Helper()
	address := conform.MLflow(t)
	t.Setenv("MLFLOW_TRACKING_USERNAME", conform.MLflowUser)
	t.Setenv("MLFLOW_TRACKING_PASSWORD", conform.MLflowPassword)
	t.Setenv("MLFLOW_TRACKING_TOKEN", "")
	t.Setenv("MLFLOW_EXPERIMENT_NAME", "tests")
	host, _ := strings.CutPrefix(address, "http://")
	return host
}

// api calls the server and decodes the response.
func api(t *testing.T, host, method, path string, in fields, out any) {
	t.Helper()
	m, err := open(registry.Reference{Scheme: scheme, Host: host, Name: "x"}, registrytest.Quick)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.call(t.Context(), method, path, in, out); err != nil {
		t.Fatal(err)
	}
}

// named returns an artifact whose content differs from those of other names.
func named(t *testing.T, name string) *registry.Artifact {
	t.Helper()
	dir := registrytest.Written(t,
		map[string]string{"mlp.onnx": registrytest.Read(t, filepath.Join("..", "..", "fixtures", "mlp.onnx")),
			"mlp.report.md": "report of " + name + "\n"})
	a, err := registry.Collect(t.Context(), filepath.Join(dir, "mlp.onnx"), registry.CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A state is the part of an artifact that the server has.
type state struct {
	Versions, Aliases, Runs, Logged []string
}

// stateOf reads the state of the registered model and of the artifact on the server.
func stateOf(t *testing.T, host, name string, a *registry.Artifact) (s state) {
	t.Helper()
	p := &pusher{artifact: a}
	if err := p.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	var model struct {
		Model registeredModel `json:"registered_model"`
	}
	api(t, host, http.MethodGet, "registered-models/get", fields{"name": name}, &model)
	for _, a := range model.Model.Aliases {
		s.Aliases = append(s.Aliases, a.Alias+" "+a.Version)
	}
	var versions struct {
		Versions []modelVersion `json:"model_versions"`
	}
	api(t, host, http.MethodGet, "model-versions/search", fields{"filter": "name='" + name + "'"}, &versions)
	for _, v := range versions.Versions {
		s.Versions = append(s.Versions, v.Version+" "+v.Status)
	}
	var experiment struct {
		Experiment struct {
			ID string `json:"experiment_id"`
		}
	}
	api(t, host, http.MethodGet, "experiments/get-by-name", fields{"experiment_name": os.Getenv("MLFLOW_EXPERIMENT_NAME")},
		&experiment)
	same := fields{"experiment_ids": []string{experiment.Experiment.ID},
		"filter": fmt.Sprintf("tags.`%s` = '%s'", tagDigest, p.digest)}
	var runs struct {
		Runs []struct{ Info struct{ Status string } }
	}
	api(t, host, http.MethodPost, "runs/search", same, &runs)
	for _, r := range runs.Runs {
		s.Runs = append(s.Runs, r.Info.Status)
	}
	var logged struct{ Models []loggedModel }
	api(t, host, http.MethodPost, "logged-models/search", same, &logged)
	for _, l := range logged.Models {
		s.Logged = append(s.Logged, l.Info.Status)
	}
	return s
}

// registered is the state after a push to an alias.
const registered = `{[1 READY] [champion 1] [FINISHED] [LOGGED_MODEL_READY]}`

// A quantized model with its reports is loaded by mlflow.pyfunc, has the accuracy of the report, and comes back as it
// was.
func TestMLflowLoadsWhatWasPushed(t *testing.T) {
	host := trackingServer(t)
	fixtures := filepath.Join("..", "..", "fixtures")
	data := filepath.Join(fixtures, "digits_test.npz")
	model := filepath.Join(t.TempDir(), "cnn.onnx")
	res, err := job.Run(t.Context(), job.Options{
		Input: filepath.Join(fixtures, "cnn.onnx"), Output: model, Steps: []pass.Options{&quantize.WeightInt8{}},
		Digest: true, Errors: true,
		Reports: []string{"json", "md", "html"}, Verify: &job.Verification{Data: job.Data{Path: data}, Force: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := registry.Collect(t.Context(), model, registry.CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ref := registrytest.Parse(t, "mlflow://"+host+"/digits@champion")
	p, err := registry.Push(t.Context(), ref, a, registrytest.Quick)
	if err != nil || p.Uploaded != a.Size() || p.Digest.String() != "mlflow://"+host+"/digits@v1" {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err = registry.Push(t.Context(), ref, a, registrytest.Quick); err != nil || p.Uploaded != 0 ||
		p.Digest.Tag != "v1" {
		t.Fatalf("second push: %+v, %v", p, err)
	}
	if got := fmt.Sprint(stateOf(t, host, "digits", a)); got != registered {
		t.Errorf("got %s, want %s", got, registered)
	}
	m := conform.LoadMLflow(t, "digits", "champion", data, "labels")
	accuracy := res.Report.Verification.Accuracy
	if m.Accuracy != accuracy.After || m.Run.Metrics["accuracy"] != accuracy.After ||
		m.Run.Metrics["source_accuracy"] != *accuracy.Before {
		t.Errorf("accuracy %v, metrics %v; the report has %v", m.Accuracy, m.Run.Metrics, accuracy)
	}
	if !maps.Equal(m.Run.Metrics, m.Model.Metrics) || len(m.Run.Metrics) != 12 ||
		m.Run.Metrics["file_bytes"] != float64(modelSize(a)) {
		t.Errorf("metrics of the run %v, of the model %v", m.Run.Metrics, m.Model.Metrics)
	}
	if text, _ := a.Find(registry.ReportText); m.Description != registrytest.Read(t, text.Path) || m.Version != "1" {
		t.Errorf("description %q", m.Description)
	}
	if file, _ := a.Model(); m.Tags["mcompress.model.sha256"] != file.SHA256 ||
		m.Tags["mcompress.report.digest"] != res.Report.Digest || m.Run.Params["recipe"] != res.Report.Recipe.Text {
		t.Errorf("tags %v, parameters %v", m.Tags, m.Run.Params)
	}
	if got, want := fmt.Sprint(m.Inputs, m.Outputs), "[map[name:input tensor-spec:map[dtype:float32 shape:[-1 1 20 20]] "+
		"type:tensor]] [map[name:logits tensor-spec:map[dtype:float32 shape:[-1 10]] type:tensor]]"; got != want {
		t.Errorf("signature %s", got)
	}
	checkPull(t, ref, a)
}

// checkPull pulls an artifact and compares it.
func checkPull(t *testing.T, ref registry.Reference, a *registry.Artifact) {
	t.Helper()
	s, err := registry.List(t.Context(), ref, registrytest.Quick)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := s.Pull(t.Context(), dir, registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if f.Role == registry.ReportPage {
			if _, err := os.Stat(filepath.Join(dir, f.Name)); err == nil {
				t.Errorf("%s is pulled", f.Name)
			}
		} else if registrytest.Read(t, filepath.Join(dir, f.Name)) != registrytest.Read(t, f.Path) {
			t.Errorf("%s differs", f.Name)
		}
	}
}

func TestMLflowVersionsAndAliases(t *testing.T) {
	host := trackingServer(t)
	push := func(text, content string, o registry.Options) (string, error) {
		p, err := registry.Push(t.Context(), registrytest.Parse(t, "mlflow://"+host+"/"+text), named(t, content), o)
		if err != nil {
			return "", err
		}
		return p.Digest.Tag, nil
	}
	if v, err := push("versions", "one", registrytest.Quick); v != "v1" || err != nil {
		t.Fatal(v, err)
	}
	if v, err := push("versions@champion", "one", registrytest.Quick); v != "v1" || err != nil {
		t.Fatal(v, err)
	}
	var conflict *registry.ConflictError
	if _, err := push("versions@champion", "two", registrytest.Quick); !errors.As(err, &conflict) ||
		!strings.Contains(err.Error(), "version 1") {
		t.Fatal(err)
	}
	if v, err := push("versions@challenger", "two", registrytest.Quick); v != "v2" || err != nil {
		t.Fatal(v, err)
	}
	if v, err := push("versions@champion", "three", registry.Options{PlainHTTP: true, Overwrite: true}); v != "v3" ||
		err != nil {
		t.Fatal(v, err)
	}
	if ref, err := registry.Move(t.Context(), registrytest.Parse(t, "mlflow://"+host+"/versions@challenger"), "champion",
		registrytest.Quick); err != nil || ref.Tag != "champion" {
		t.Fatal(ref, err)
	}
	for text, want := range map[string]string{"versions": "v3", "versions@latest": "v3", "versions@champion": "v2",
		"versions@challenger": "v2", "versions@v1": "v1"} {
		s, err := registry.List(t.Context(), registrytest.Parse(t, "mlflow://"+host+"/"+text), registrytest.Quick)
		if err != nil || s.Digest.Tag != want {
			t.Errorf("%s: %v, %v; want %s", text, s, err, want)
		}
	}
	// The same content under another name is not uploaded again.
	p, err := registry.Push(t.Context(), registrytest.Parse(t, "mlflow://"+host+"/versions-copy"), named(t, "one"),
		registrytest.Quick)
	if err != nil || p.Uploaded != 0 || p.Digest.Tag != "v1" {
		t.Errorf("%+v, %v", p, err)
	}
	if got := fmt.Sprint(stateOf(t, host, "versions-copy",
		named(t, "one"))); got != `{[1 READY] [] [FINISHED] [LOGGED_MODEL_READY]}` {
		t.Error(got)
	}
}

// External data and subfolders are uploaded, and long reports are cut for the description.
func TestMLflowOfExternalData(t *testing.T) {
	host := trackingServer(t)
	files := map[string]string{"external.report.md": strings.Repeat(strings.Repeat("é", 99)+"\n", 200)}
	for _, name := range []string{"external.onnx", "external_a.bin", "external_b.bin"} {
		files[name] = registrytest.Read(t, filepath.Join("..", "..", "fixtures", name))
	}
	dir := registrytest.Written(t, files)
	a, err := registry.Collect(t.Context(), filepath.Join(dir, "external.onnx"), registry.CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ref := registrytest.Parse(t, "mlflow://"+host+"/external")
	if _, err := registry.Push(t.Context(), ref, a, registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	checkPull(t, ref, a)
	var out struct {
		Version struct{ Description string } `json:"model_version"`
	}
	api(t, host, http.MethodGet, "model-versions/get", fields{"name": "external", "version": "1"}, &out)
	if n := len([]rune(out.Version.Description)); n > maxDescription || n < maxDescription-200 ||
		!strings.HasSuffix(out.Version.Description, "é\n\n(The rest is in the artifact external.report.md.)") {
		t.Errorf("%d characters: …%s", n, out.Version.Description[len(out.Version.Description)-100:])
	}
}

func TestMLflowReferences(t *testing.T) {
	for text, want := range map[string]registry.Reference{
		"mlflow://h/m":                  {Scheme: "mlflow", Host: "h", Name: "m"},
		"mlflow://h:5000/m@champion":    {Scheme: "mlflow", Host: "h:5000", Name: "m", Tag: "champion"},
		"mlflow://h/a/b/my model@v3":    {Scheme: "mlflow", Host: "h/a/b", Name: "my model", Tag: "v3"},
		"mlflow://[::1]:5000/m.1@a-b_c": {Scheme: "mlflow", Host: "[::1]:5000", Name: "m.1", Tag: "a-b_c"},
	} {
		got, err := registry.Parse(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"mlflow:h/m", "mlflow://h", "mlflow:///m", "mlflow://h/", "mlflow://h/@a",
		"mlflow://h/m@", "mlflow://h/m@a b", "mlflow://h/m:1", "mlflow://h/m'", "mlflow://u@h/m"} {
		if ref, err := registry.Parse(text); err == nil {
			t.Errorf("%s: %+v", text, ref)
		}
	}
}
