package mlflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/internal/retry"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report/verification"
)

// A tracking is an MLflow server in this process, as far as a client of models needs it: tests of each response take
// milliseconds. The other tests of MLflow, with its own server, hold that it behaves like this one.
type tracking struct {
	host string

	mu          sync.Mutex
	requests    []string // by kindOf
	fault       fault    // nil for none
	experiments map[string]map[string]any
	models      map[string]map[string]string // aliases by registered model
	versions    map[string][]*fakeVersion    // by registered model, from version 1
	runs        []*fakeRun
	logged      []*fakeLogged
	files       map[string][]byte
}

type fakeVersion struct {
	Version     string `json:"version"`
	Status      string `json:"status"`
	Source      string `json:"source"`
	ModelID     string `json:"model_id"`
	Description string `json:"description"`
	Tags        []tag  `json:"tags"`
	Message     string `json:"status_message,omitempty"`
}

type fakeRun struct {
	ID, Status string
	Tags       []tag
	Outputs    []string
	Metrics    []metric
	Params     []tag
}

type fakeLogged struct {
	ID, Run, Status, Name string
	Tags                  []tag
}

func (l *fakeLogged) info() map[string]any {
	return map[string]any{"info": map[string]any{"model_id": l.ID,
		"artifact_uri": "mlflow-artifacts:/1/models/" + l.ID + "/artifacts", "source_run_id": l.Run, "status": l.Status,
		"tags": l.Tags}}
}

// newTracking starts a server without credentials.
func newTracking(t testing.TB) *tracking {
	t.Helper()
	for _, name := range []string{"MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN",
		"MLFLOW_EXPERIMENT_NAME"} {
		t.Setenv(name, "")
	}
	s := &tracking{experiments: map[string]map[string]any{}, models: map[string]map[string]string{},
		versions: map[string][]*fakeVersion{}, files: map[string][]byte{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	return s
}

func (s *tracking) ref(t testing.TB, name string) registry.Reference {
	t.Helper()
	return registrytest.Parse(t, "mlflow://"+s.host+"/"+name)
}

// set changes the fault and forgets requests.
func (s *tracking) set(f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.requests = f, nil
}

var tagFilter = regexp.MustCompile("tags\\.`([^`]+)` ?= ?'([^']*)'")

// selected reports whether tags are those of a filter.
func selected(filter string, tags []tag) bool {
	m := tagFilter.FindStringSubmatch(filter)
	return m == nil || slices.Contains(tags, tag{m[1], m[2]})
}

func (s *tracking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, kindOf(r))
	f := s.fault
	s.mu.Unlock()
	if f != nil && f(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/2.0/")
	if file, ok := strings.CutPrefix(path, "mlflow-artifacts/artifacts/"); ok {
		s.file(w, r, file, body)
		return
	}
	var in map[string]any
	if r.Method == http.MethodGet {
		in = map[string]any{}
		for k, v := range r.URL.Query() {
			in[k] = v[0]
		}
	} else if err := json.Unmarshal(body, &in); err != nil {
		fail(w, http.StatusBadRequest, "INVALID_PARAMETER_VALUE")
		return
	}
	out, code := s.answer(r.Method+" "+path, in)
	if code != "" {
		fail(w, map[string]int{doesNotExist: http.StatusNotFound}[code], code)
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

func fail(w http.ResponseWriter, status int, code string) {
	if status == 0 {
		status = http.StatusBadRequest
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error_code": %q, "message": "because"}`, code)
}

// file stores and serves files, by ranges.
func (s *tracking) file(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	if r.Method == http.MethodPut {
		if int64(len(body)) == r.ContentLength {
			s.files[path] = body
		}
		fmt.Fprint(w, "{}")
		return
	}
	content, ok := s.files[path]
	if !ok {
		fail(w, http.StatusNotFound, doesNotExist)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func tagsOf(v any) (tags []tag) {
	text, _ := json.Marshal(v)
	_ = json.Unmarshal(text, &tags)
	return tags
}

func text(v any) string { s, _ := v.(string); return s }

// answer is the response to a request, or the code of an error.
func (s *tracking) answer(request string, in map[string]any) (any, string) {
	name := text(in["name"])
	find := func(id string) *fakeRun {
		i := slices.IndexFunc(s.runs, func(r *fakeRun) bool { return r.ID == id })
		return s.runs[i]
	}
	switch request {
	case "GET mlflow/registered-models/get":
		aliases, ok := s.models[name]
		if !ok {
			return nil, doesNotExist
		}
		list := []map[string]string{}
		for _, alias := range slices.Sorted(maps.Keys(aliases)) {
			list = append(list, map[string]string{"alias": alias, "version": aliases[alias]})
		}
		return map[string]any{"registered_model": map[string]any{"name": name, "aliases": list}}, ""
	case "POST mlflow/registered-models/create":
		if s.models[name] != nil {
			return nil, alreadyExists
		}
		s.models[name] = map[string]string{}
	case "DELETE mlflow/registered-models/delete":
		delete(s.models, name)
	case "POST mlflow/registered-models/alias":
		s.models[name][text(in["alias"])] = text(in["version"])
	case "GET mlflow/model-versions/get":
		n, _ := strconv.Atoi(text(in["version"]))
		if n < 1 || n > len(s.versions[name]) {
			return nil, doesNotExist
		}
		return map[string]any{"model_version": s.versions[name][n-1]}, ""
	case "GET mlflow/model-versions/search":
		filter := text(in["filter"])
		name, _, _ = strings.Cut(strings.TrimPrefix(filter, "name='"), "'")
		found := []*fakeVersion{}
		for _, v := range s.versions[name] { // in no special order, as a server may have it
			if selected(filter, v.Tags) {
				found = append(found, v)
			}
		}
		return map[string]any{"model_versions": found}, ""
	case "POST mlflow/model-versions/create":
		v := &fakeVersion{Version: strconv.Itoa(len(s.versions[name]) + 1), Status: "READY", Source: text(in["source"]),
			ModelID: text(in["model_id"]), Description: text(in["description"]), Tags: tagsOf(in["tags"])}
		s.versions[name] = append(s.versions[name], v)
		return map[string]any{"model_version": v}, ""
	case "DELETE mlflow/model-versions/delete":
		s.versions[name] = nil
	case "GET mlflow/experiments/get-by-name":
		e, ok := s.experiments[text(in["experiment_name"])]
		if !ok {
			return nil, doesNotExist
		}
		return map[string]any{"experiment": e}, ""
	case "POST mlflow/experiments/create":
		s.experiments[name] = map[string]any{"experiment_id": "1", "artifact_location": "mlflow-artifacts:/1",
			"lifecycle_stage": "active"}
	case "POST mlflow/runs/search":
		found := []any{}
		for _, r := range s.runs {
			if selected(text(in["filter"]), r.Tags) {
				found = append(found, map[string]any{"info": map[string]any{"run_id": r.ID}})
			}
		}
		return map[string]any{"runs": found}, ""
	case "POST mlflow/runs/create":
		r := &fakeRun{ID: fmt.Sprint("r", len(s.runs)), Status: "RUNNING", Tags: tagsOf(in["tags"])}
		s.runs = append(s.runs, r)
		return map[string]any{"run": map[string]any{"info": map[string]any{"run_id": r.ID}}}, ""
	case "GET mlflow/runs/get":
		models := []any{}
		for _, id := range find(text(in["run_id"])).Outputs {
			models = append(models, map[string]any{"model_id": id})
		}
		return map[string]any{"run": map[string]any{"outputs": map[string]any{"model_outputs": models}}}, ""
	case "POST mlflow/runs/update":
		find(text(in["run_id"])).Status = text(in["status"])
	case "POST mlflow/runs/log-batch":
		r := find(text(in["run_id"]))
		r.Params = tagsOf(in["params"])
		metrics, _ := json.Marshal(in["metrics"])
		_ = json.Unmarshal(metrics, &r.Metrics)
	case "POST mlflow/runs/outputs":
		r := find(text(in["run_id"]))
		for _, m := range in["models"].([]any) {
			r.Outputs = append(r.Outputs, text(m.(map[string]any)["model_id"]))
		}
	case "POST mlflow/logged-models/search":
		found := []any{}
		for _, l := range s.logged {
			if selected(text(in["filter"]), l.Tags) {
				found = append(found, l.info())
			}
		}
		return map[string]any{"models": found}, ""
	case "POST mlflow/logged-models":
		l := &fakeLogged{ID: fmt.Sprint("m-", len(s.logged)), Run: text(in["source_run_id"]), Status: "LOGGED_MODEL_PENDING",
			Name: name, Tags: tagsOf(in["tags"])}
		s.logged = append(s.logged, l)
		return map[string]any{"model": l.info()}, ""
	case "GET mlflow-artifacts/artifacts":
		return map[string]any{"files": s.folder(text(in["path"]))}, ""
	default:
		return s.loggedModel(request, in)
	}
	return map[string]any{}, ""
}

// loggedModel answers requests with the ID of a logged model in their path.
func (s *tracking) loggedModel(request string, in map[string]any) (any, string) {
	method, path, _ := strings.Cut(request, " mlflow/logged-models/")
	id, tags := strings.CutSuffix(path, "/tags")
	i := slices.IndexFunc(s.logged, func(l *fakeLogged) bool { return l.ID == id })
	if i < 0 {
		return nil, doesNotExist
	}
	l := s.logged[i]
	switch {
	case tags:
		for _, added := range tagsOf(in["tags"]) {
			l.Tags = append(slices.DeleteFunc(l.Tags, func(t tag) bool { return t.Key == added.Key }), added)
		}
	case method == http.MethodPatch:
		l.Status = text(in["status"])
	}
	return map[string]any{"model": l.info()}, ""
}

// folder lists the files and folders in a folder.
func (s *tracking) folder(folder string) []map[string]any {
	list, seen := []map[string]any{}, map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(s.files)) {
		rest, ok := strings.CutPrefix(path, folder+"/")
		if !ok {
			continue
		}
		if sub, _, below := strings.Cut(rest, "/"); below {
			if !seen[sub] {
				list = append(list, map[string]any{"path": sub, "is_dir": true})
			}
			seen[sub] = true
			continue
		}
		entry := map[string]any{"path": rest, "is_dir": false}
		if n := len(s.files[path]); n > 0 {
			entry["file_size"] = n
		}
		list = append(list, entry)
	}
	return list
}

// reported is an artifact with a report, external data, configuration in a subfolder and an empty file.
func reportedArtifact(t *testing.T) *registry.Artifact {
	t.Helper()
	a := registrytest.Complete(t)
	text := `{"digest": "abc", "tool": {"name": "mcompress", "version": "1.2.3"}, "recipe": {"text": "steps: []\n"}, "source": {"files": [{"name": "s.onnx", "sha256": "def"}]},
		"result": {"files": []}, "totals": {"ratio": 3.5, "file_bytes": {"before": 700, "after": 200}, "runtime_bytes": {"before": 800, "after": 300}}, "coverage": {"share": 0.75},
		"verification": {"metric": {"name": "F1 (macro)", "before": 0.5, "after": 0.25}, "latency": {"before_seconds": 2, "after_seconds": 1}}}`
	for i := range a.Files {
		f := &a.Files[i]
		switch f.Role {
		case registry.ReportJSON:
			if err := os.WriteFile(f.Path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		case registry.Signature:
			if err := os.WriteFile(f.Path, nil, 0o666); err != nil {
				t.Fatal(err)
			}
		case registry.Config:
			f.Name = "tokenizer/" + f.Name
		}
		content := []byte(registrytest.Read(t, f.Path))
		f.Size, f.SHA256 = int64(len(content)), registrytest.Sum(content)
	}
	return a
}

// Figures that a report does not have, or that are no numbers in JSON, are no metrics.
func TestMetricsOfMLflow(t *testing.T) {
	p := &pusher{facts: &reportFacts{},
		artifact: &registry.Artifact{Files: []registry.File{{Role: registry.Model, Size: 5}, {Role: registry.Data, Size: 6},
			{Role: registry.Config, Size: 7}}}}
	for name, c := range map[string]struct {
		ratio, coverage, metric *float64
		want                    map[string]float64
	}{
		"absent": {ptr(2), nil, nil, map[string]float64{"compression_ratio": 2}},
		"numbers": {ptr(2), ptr(0.5), ptr(0),
			map[string]float64{"compression_ratio": 2, "coverage": 0.5, "f1": 0, "source_f1": 0}},
		"no numbers": {ptr(math.Inf(1)), ptr(math.NaN()), ptr(math.Inf(-1)), map[string]float64{}},
	} {
		p.facts.totals.Ratio, p.facts.coverage.Fraction = *c.ratio, c.coverage
		p.facts.verification.Metric = &verification.Metric{Name: "f1", Before: c.metric, After: c.metric}
		got := map[string]float64{}
		for _, m := range p.metrics() {
			got[m.Key] = m.Value
		}
		for _, key := range []string{"file_bytes", "source_file_bytes", "runtime_bytes", "source_runtime_bytes"} {
			c.want[key] = 0
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	p.facts = nil
	if got := p.metrics(); len(got) != 1 || got[0].Key != "file_bytes" || got[0].Value != 11 {
		t.Errorf("without a report: %+v", got)
	}
}

// A push makes a run, a logged model and a version with all files, tags, figures and the recipe; the next one of the
// same files makes and sends nothing, unless it is interrupted or the server has lost some of them.
func TestPushToMLflow(t *testing.T) {
	s := newTracking(t)
	a := reportedArtifact(t)
	var last int64
	o := registrytest.Quick
	o.Progress = func(done, _ int64) { last = done }
	for i, want := range []int64{a.Size(), 0} {
		s.set(nil)
		last = 0
		p, err := registry.Push(t.Context(), s.ref(t, "a model@champion"), a, o)
		if err != nil || p.Uploaded != want || p.Size != a.Size() || last != a.Size() || p.Digest != s.ref(t, "a model@v1") {
			t.Fatalf("push %d: %+v, progress %d, %v", i+1, p, last, err)
		}
		if i == 1 && slices.ContainsFunc(s.requests, func(r string) bool { return !strings.HasPrefix(r, "GET ") }) {
			t.Errorf("the second push requests %q", s.requests)
		}
	}
	if len(s.runs) != 1 || len(s.logged) != 1 || len(s.versions["a model"]) != 1 ||
		s.models["a model"]["champion"] != "1" {
		t.Fatalf("%d runs, %d logged models, versions %v, aliases %v", len(s.runs), len(s.logged), s.versions, s.models)
	}
	r, l, v := s.runs[0], s.logged[0], s.versions["a model"][0]
	if r.Status != "FINISHED" || l.Status != loggedReady || !slices.Equal(r.Outputs, []string{l.ID}) || l.Run != r.ID ||
		v.ModelID != l.ID || v.Source != "models:/"+l.ID || v.Description != "# Report\n" {
		t.Errorf("run %+v, logged model %+v, version %+v", r, l, v)
	}
	model, _ := a.Model()
	for _, want := range []tag{{"mcompress.model.sha256", model.SHA256}, {"mcompress.report.digest", "abc"},
		{"mcompress.version", "1.2.3"}, {"mcompress.source.sha256", "def"}} {
		if !slices.Contains(v.Tags, want) || !slices.Contains(r.Tags, want) || !slices.Contains(l.Tags, want) {
			t.Errorf("no tag %v: %v", want, v.Tags)
		}
	}
	if !slices.Equal(r.Params, []tag{{"recipe", "steps: []\n"}}) {
		t.Errorf("parameters %v", r.Params)
	}
	figures := map[string]float64{}
	for _, m := range r.Metrics {
		figures[m.Key] = m.Value
		if m.Model != l.ID || m.Timestamp == 0 {
			t.Errorf("metric %+v", m)
		}
	}
	want := map[string]float64{
		"file_bytes": 200, "source_file_bytes": 700, "runtime_bytes": 300, "source_runtime_bytes": 800,
		"compression_ratio": 3.5, "coverage": 0.75,
		"F1__macro_": 0.25, "source_F1__macro_": 0.5, "latency_seconds": 1, "source_latency_seconds": 2,
	}
	if !maps.Equal(figures, want) {
		t.Errorf("metrics %v, want %v", figures, want)
	}
	folder := "1/models/" + l.ID + "/artifacts/"
	for _, name := range []string{mlmodelName, manifestName, "conda.yaml", "requirements.txt"} {
		if len(s.files[folder+name]) == 0 {
			t.Errorf("no file %s of %q", name, slices.Sorted(maps.Keys(s.files)))
		}
	}
	checkPull(t, s.ref(t, "a model"), a)
	// The same files under another name are logged once.
	if p, err := registry.Push(t.Context(), s.ref(t, "copy"), a, registrytest.Quick); err != nil || p.Uploaded != 0 ||
		len(s.runs) != 1 || len(s.logged) != 1 || s.models["copy"] == nil {
		t.Errorf("%+v, %v", p, err)
	}
	// What the server has lost is sent again.
	delete(s.files, folder+a.Files[0].Name)
	s.files[folder+a.Files[1].Name] = []byte("part")
	delete(s.versions, "a model")
	if p, err := registry.Push(t.Context(), s.ref(t, "a model"), a, registrytest.Quick); err != nil ||
		p.Uploaded != a.Files[0].Size+a.Files[1].Size {
		t.Errorf("%+v, %v", p, err)
	}
	checkPull(t, s.ref(t, "a model"), a)
}

// Aliases name versions: one is moved by a push to it only if that is wanted, or by Move; references find versions by
// aliases, numbers, and the latest.
func TestAliasesOfMLflow(t *testing.T) {
	s := newTracking(t)
	over := registrytest.Quick
	over.Overwrite = true
	push := func(ref, content string, o registry.Options) (registry.Reference, error) {
		p, err := registry.Push(t.Context(), s.ref(t, ref), named(t, content), o)
		if err != nil {
			return registry.Reference{}, err
		}
		return p.Digest, nil
	}
	for _, c := range []struct {
		ref, content string
		o            registry.Options
		want         string // version; empty for a conflict
	}{
		{"m@a", "1", registrytest.Quick, "v1"}, {"m@a", "1", registrytest.Quick, "v1"}, {"m@a", "2", registrytest.Quick, ""},
		{"m@b", "2", registrytest.Quick, "v2"}, {"m", "2", registrytest.Quick, "v2"}, {"m@a", "2", over, "v2"},
		{"m@c", "1", registrytest.Quick, "v1"}, {"m", "3", registrytest.Quick, "v3"},
	} {
		got, err := push(c.ref, c.content, c.o)
		if c.want == "" && !registrytest.IsA[*registry.ConflictError](err) ||
			c.want != "" && (err != nil || got != s.ref(t, "m@"+c.want)) {
			t.Errorf("%s of %s: %v, %v", c.ref, c.content, got, err)
		}
	}
	if got := fmt.Sprint(s.models["m"]); got != "map[a:2 b:2 c:1]" {
		t.Errorf("aliases %s", got)
	}
	for range 9 { // versions are numbers, not texts
		if _, err := push("m", fmt.Sprint("more ", len(s.versions["m"])), registrytest.Quick); err != nil {
			t.Fatal(err)
		}
	}
	for ref, want := range map[string]string{"m": "v12", "m@latest": "v12", "m@a": "v2", "m@c": "v1", "m@v3": "v3",
		"m@V3": "v3"} {
		l, err := registry.List(t.Context(), s.ref(t, ref), registrytest.Quick)
		if err != nil || l.Digest.Tag != want || len(l.Files) != 2 {
			t.Errorf("%s: %+v, %v", ref, l, err)
		}
	}
	if ref, err := registry.Move(t.Context(), s.ref(t, "m@v3"), "a", registrytest.Quick); err != nil ||
		ref != s.ref(t, "m@a") || s.models["m"]["a"] != "3" {
		t.Errorf("%v, %v, aliases %v", ref, err, s.models["m"])
	}
	for _, alias := range []string{"v7", "latest", "a b", ""} {
		if _, err := registry.Move(t.Context(), s.ref(t, "m"), alias,
			registrytest.Quick); !registrytest.IsA[*registry.ReferenceError](err) {
			t.Errorf("alias %q: %v", alias, err)
		}
	}
	for _, ref := range []string{"m@v1", "m@latest"} {
		_, pushed := push(ref, "1", registrytest.Quick)
		if check := registry.Check(t.Context(), s.ref(t, ref),
			registrytest.Quick); !registrytest.IsA[*registry.ReferenceError](pushed) ||
			!registrytest.IsA[*registry.ReferenceError](check) {
			t.Errorf("%s: %v, %v", ref, pushed, check)
		}
	}
	for ref, want := range map[string]string{"none": `registered model "none": not found`,
		"m@none": `alias "none" of the registered model "m": not found`,
		"m@v99":  `version 99 of the registered model "m": not found`} {
		_, moved := registry.Move(t.Context(), s.ref(t, ref), "x", registrytest.Quick)
		_, listed := registry.List(t.Context(), s.ref(t, ref), registrytest.Quick)
		for _, err := range []error{moved, listed} {
			if !registrytest.IsA[*registry.TransferError](err) || !errors.Is(err, registry.ErrNotFound) ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", ref, err)
			}
		}
	}
	s.models["empty"] = map[string]string{}
	if _, err := registry.List(t.Context(), s.ref(t, "empty"), registrytest.Quick); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a registered model without versions: %v", err)
	}
	s.versions["m"][0].Tags = nil
	if _, err := registry.List(t.Context(), s.ref(t, "m@v1"), registrytest.Quick); err == nil ||
		!strings.Contains(err.Error(), "version 1 was not pushed by mcompress") {
		t.Errorf("a version of another tool: %v", err)
	}
	s.versions["m"][1].ModelID = "" // of the source instead
	if _, err := registry.List(t.Context(), s.ref(t, "m@v2"), registrytest.Quick); err != nil {
		t.Error(err)
	}
	s.logged[1].ID = "deleted"
	if _, err := registry.List(t.Context(), s.ref(t, "m@v2"), registrytest.Quick); err == nil ||
		!strings.Contains(err.Error(), "the logged model of version 2 is deleted") {
		t.Errorf("a version without files: %v", err)
	}
}

// Whichever request is refused, by the server or for want of one, a push, a list and a pull report it, and nothing that
// is not complete has a version.
func TestEachRefusedRequestOfMLflow(t *testing.T) {
	calls := func(s *tracking) map[string]func() error {
		return map[string]func() error{
			"push": func() error {
				_, err := registry.Push(t.Context(), s.ref(t, "m@a"), named(t, "x"), registrytest.Quick)
				return err
			},
			"check": func() error { return registry.Check(t.Context(), s.ref(t, "m"), registrytest.Quick) },
			"list":  func() error { _, err := registry.List(t.Context(), s.ref(t, "m@a"), registrytest.Quick); return err },
			"move": func() error {
				_, err := registry.Move(t.Context(), s.ref(t, "m@a"), "b", registrytest.Quick)
				return err
			},
			"pull": func() error {
				l, err := registry.List(t.Context(), s.ref(t, "m@a"), registrytest.Quick)
				if err != nil {
					return err
				}
				_, err = l.Pull(t.Context(), t.TempDir(), registrytest.Quick)
				return err
			},
		}
	}
	prepared := func(call string) *tracking {
		s := newTracking(t)
		if call != "push" {
			if err := calls(s)["push"](); err != nil {
				t.Fatal(err)
			}
		}
		s.set(nil)
		return s
	}
	for call := range calls(nil) {
		s := prepared(call)
		if err := calls(s)[call](); err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		for _, kind := range slices.Compact(slices.Sorted(slices.Values(s.requests))) {
			for name, refuse := range map[string]func(w http.ResponseWriter){
				"status": func(w http.ResponseWriter) { fail(w, http.StatusForbidden, "PERMISSION_DENIED") },
				"text":   func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") },
			} {
				s := prepared(call)
				refused := false
				s.set(func(w http.ResponseWriter, r *http.Request) bool {
					if kindOf(r) != kind {
						return false
					}
					refused = true
					refuse(w)
					return true
				})
				err := calls(s)[call]()
				if !refused {
					t.Errorf("%s: no request %s", call, kind)
				}
				// whose response has no content that matters
				if err == nil && !(name == "text" && strings.HasPrefix(kind, "PUT artifacts/")) {
					t.Errorf("%s: %s is answered by %s, and that is no error", call, kind, name)
				}
				if call == "push" && err != nil && len(s.versions["m"]) > 0 && !strings.Contains(kind, "alias") &&
					!strings.Contains(kind, "model-versions/create") {
					t.Errorf("a push whose request %s is refused has a version", kind)
				}
				if call == "push" && name == "status" {
					for _, r := range s.runs {
						if r.Status == "RUNNING" && kind != "POST mlflow/runs/update" {
							t.Errorf("a push whose request %s is refused leaves its run %s", kind, r.Status)
						}
					}
				}
			}
		}
	}
}

// The server makes something and its response is lost: the next attempt finds that, and nothing is made twice.
func TestLostResponsesOfMLflow(t *testing.T) {
	for _, kind := range []string{
		"POST mlflow/runs/create", "POST mlflow/logged-models", "POST mlflow/registered-models/create",
		"POST mlflow/model-versions/create",
	} {
		s := newTracking(t)
		lost := 0
		s.set(func(_ http.ResponseWriter, r *http.Request) bool {
			if kindOf(r) != kind || lost > 0 {
				return false
			}
			lost++
			s.mu.Lock()
			s.fault = nil // the server answers the request
			s.mu.Unlock()
			s.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
		if _, err := registry.Push(t.Context(), s.ref(t, "m@a"), named(t, "x"), registrytest.Quick); err != nil || lost != 1 {
			t.Fatalf("%s: %d responses are lost, %v", kind, lost, err)
		}
		if len(s.runs) != 1 || len(s.logged) != 1 || len(s.versions["m"]) != 1 {
			t.Errorf("%s: %d runs, %d logged models, %d versions", kind, len(s.runs), len(s.logged), len(s.versions["m"]))
		}
	}
}

// Responses that are not as expected: each is one error that says what to do, and a version that is not ready is
// removed.
func TestUnexpectedResponsesOfMLflow(t *testing.T) {
	s := newTracking(t)
	s.experiments[defaultExperiment] = map[string]any{"experiment_id": "1", "artifact_location": "mlflow-artifacts:/1",
		"lifecycle_stage": "deleted"}
	push := func() error {
		_, err := registry.Push(t.Context(), s.ref(t, "m"), named(t, "x"), registrytest.Quick)
		return err
	}
	expect := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	expect(push(), `the experiment "mcompress" is deleted; restore it`)
	s.experiments[defaultExperiment]["lifecycle_stage"], s.experiments[defaultExperiment]["artifact_location"] = "active",
		"s3://bucket"
	expect(push(), "the server does not store artifacts")
	delete(s.experiments, defaultExperiment)
	for status, want := range map[string]string{"FAILED_REGISTRATION": "version 1 is not registered: FAILED_REGISTRATION",
		"PENDING_REGISTRATION": ""} {
		s.set(func(w http.ResponseWriter, r *http.Request) bool {
			if kindOf(r) != "POST mlflow/model-versions/create" {
				return false
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.versions["m"] = []*fakeVersion{{Version: "1", Status: "READY"}}
			fmt.Fprintf(w, `{"model_version": {"version": "1", "status": %q}}`, status)
			return true
		})
		err := push()
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if expect(err, want); !slices.Contains(s.requests, "DELETE mlflow/model-versions/delete") {
			t.Errorf("the version is not removed: %q", s.requests)
		}
		s.versions["m"] = nil
	}
	m, err := open(s.ref(t, "m"), registrytest.Quick)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status     int
		body, auth string
		want       string
		transient  bool
	}{
		{http.StatusUnauthorized, "", "", "requires credentials: set MLFLOW_TRACKING_TOKEN", false},
		{http.StatusUnauthorized, "", "Bearer x", "refuses the credentials of MLFLOW_TRACKING_TOKEN", false},
		{http.StatusForbidden, "<html>", "", "denies access: Forbidden", false},
		{http.StatusNotFound, "no such page", "",
			"is no MLflow server of version 3, or its path is missing before the name of the model: no such page", false},
		{http.StatusNotFound, `{"error_code": "X", "message": "a\n b"}`, "", "responds with status 404: a b", false},
		{http.StatusBadRequest, strings.Repeat("x", 299), "", strings.Repeat("x", 299), false},
		{http.StatusBadRequest, strings.Repeat("x", 300), "", "Bad Request", false},
		{http.StatusBadRequest, "", "", "Bad Request", false},
		{http.StatusServiceUnavailable, `{"error_code": "X"}`, "", "the server responds with status 503: ", true},
	} {
		m.auth = c.auth
		response := &http.Response{StatusCode: c.status, Body: io.NopCloser(strings.NewReader(c.body)),
			Header: http.Header{"Retry-After": {"7"}}}
		err := m.status(response)
		wait := retry.Requested(err)
		if expect(err, c.want); registry.IsTransient(err) != c.transient || c.transient && wait != 7*time.Second {
			t.Errorf("%d: transient %t, wait %v", c.status, registry.IsTransient(err), wait)
		}
	}
}

// A download continues where it was, from a server with ranges and one without, and takes no other bytes than those of
// the manifest.
func TestDownloadsOfMLflow(t *testing.T) {
	s := newTracking(t)
	s.files["f"] = []byte("0123456789")
	m, err := open(s.ref(t, "m"), registrytest.Quick)
	if err != nil {
		t.Fatal(err)
	}
	f := registry.File{Name: "f", Size: 10}
	read := func(f registry.File, from int64) (string, int64, error) {
		content, at, err := m.download(t.Context(), "f", f, from)
		if err != nil {
			return "", 0, err
		}
		defer content.Close()
		text, err := io.ReadAll(content)
		return string(text), at, err
	}
	header := func(name, value string) fault {
		return func(_ http.ResponseWriter, r *http.Request) bool {
			if value == "" {
				r.Header.Del(name)
			} else {
				r.Header.Set(name, value)
			}
			return false
		}
	}
	for _, c := range []struct {
		fault fault
		f     registry.File
		from  int64
		want  string
		at    int64
	}{
		{nil, f, 0, "0123456789", 0}, {nil, f, 4, "456789", 4}, {header("Range", ""), f, 4, "0123456789", 0},
		{nil, registry.File{Name: "f", Size: -1}, 0, "0123456789", 0},
		{header("Range", "bytes=5-"), f, 4, "", 0}, {header("Range", "bytes=4-7"), f, 4, "", 0},
		{header("Range", "bytes=4-"), f, 0, "", 0}, {nil, registry.File{Name: "f", Size: 9}, 0, "", 0},
		{nil, registry.File{Name: "f", Size: 11}, 4, "", 0},
	} {
		s.set(c.fault)
		if got, at, err := read(c.f, c.from); (err == nil) != (c.want != "") || got != c.want || at != c.at {
			t.Errorf("%d bytes from %d: %q from %d, %v", c.f.Size, c.from, got, at, err)
		}
	}
	s.set(nil)
	sum := registrytest.Sum(s.files["f"])
	if text, err := m.read(t.Context(), "f", sum); err != nil || string(text) != "0123456789" {
		t.Errorf("%q, %v", text, err)
	}
	s.files["f"][0]++
	if _, err := m.read(t.Context(), "f", sum); !registrytest.IsA[*registry.ContentError](err) {
		t.Errorf("other bytes: %v", err)
	}
	s.files["d/a"], s.files["d/b/c"], s.files["d/b/e/f"], s.files["d/empty"] = []byte("12"), []byte("123"), []byte("1"),
		nil
	if got, err := m.stored(t.Context(), "d"); err != nil ||
		!maps.Equal(got, map[string]int64{"a": 2, "b/c": 3, "b/e/f": 1, "empty": 0}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, want := m.artifactURL("a b/c%/ü"),
		"http://"+s.host+"/api/2.0/mlflow-artifacts/artifacts/a%20b/c%25/%C3%BC"; got != want {
		t.Errorf("address %s, want %s", got, want)
	}
}

// The description of a version is the report, or its head up to the end of a line within MLflow's limit; recipes above
// the limit of parameters are left out.
func TestDocumentsOfMLflow(t *testing.T) {
	line := strings.Repeat("é", 99) + "\n"
	p := &pusher{artifact: &registry.Artifact{Files: []registry.File{{Name: "m.report.md", Role: registry.ReportText}}}}
	const more = "\n\n(The rest is in the artifact m.report.md.)"
	for _, c := range []struct {
		text, want string
	}{
		{"", ""}, {"a\xffb", "ab"}, {strings.Repeat("x", maxDescription), strings.Repeat("x", maxDescription)},
		{strings.Repeat("x", maxDescription+1), strings.Repeat("x", maxDescription-len(more)) + more},
		{strings.Repeat(line, 50), strings.Repeat(line, 50)},
		{strings.Repeat(line, 51), strings.TrimSuffix(strings.Repeat(line, 49), "\n") + more},
		// a line ends at the limit
		{strings.Repeat("x", maxDescription-len(more)-1) + "\n" + line,
			strings.Repeat("x", maxDescription-len(more)-1) + more},
	} {
		p.head = []byte(c.text)
		if got := p.description(); got != c.want {
			t.Errorf("%d bytes: %d, …%.60q, want %d", len(c.text), len(got), got[max(0, len(got)-60):], len(c.want))
		}
	}
	for n, want := range map[int]int{0: 0, 1: 1, maxParam: 1, maxParam + 1: 0} {
		p.facts = &reportFacts{}
		p.facts.recipe.Text = strings.Repeat("x", n)
		if got := p.params(); got == nil || len(got) != want {
			t.Errorf("a recipe of %d bytes: %d parameters", n, len(got))
		}
	}
	if got := metricKey("aZ09_-. /é@[`{"); got != "aZ09_-.______"+"_" {
		t.Errorf("key %q", got)
	}
	if got := loggedName(`a/b:c.d%e"f'g h`); got != "a-b-c-d-e-f-g h" {
		t.Errorf("name %q", got)
	}
	for _, name := range []string{mlmodelName, manifestName} {
		p := &pusher{artifact: &registry.Artifact{Files: []registry.File{{Name: name}}}}
		if err := p.prepare(t.Context()); !registrytest.IsA[*registry.ContentError](err) {
			t.Errorf("a file %s: %v", name, err)
		}
	}
	a := reportedArtifact(t)
	report, _ := a.Find(registry.ReportJSON)
	if err := os.WriteFile(report.Path, []byte(`{"totals": 5}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := (&pusher{artifact: a}).prepare(t.Context()); !registrytest.IsA[*registry.ContentError](err) {
		t.Errorf("a report that is none: %v", err)
	}
	for _, role := range []registry.Role{registry.ReportJSON, registry.ReportText, registry.Model} {
		a := reportedArtifact(t)
		i := slices.IndexFunc(a.Files, func(f registry.File) bool { return f.Role == role })
		a.Files[i].Path = filepath.Join(t.TempDir(), "none")
		if err := (&pusher{artifact: a}).prepare(t.Context()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without the %s: %v", role, err)
		}
	}
}

func TestKind(t *testing.T) {
	registrytest.Kind{
		Scheme: scheme, Artifact: registrytest.Complete(t), Place: newTracking(t).ref(t, "m@one"), Tags: true,
	}.Test(t)
}
