package mlflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/internal/retry"
	"github.com/mcompress/mcompress/registry"
)

// A fault decides about a request of a push: it returns true if it has responded.
type fault func(w http.ResponseWriter, r *http.Request) bool

// faulty is a proxy of the server with faults. It returns its host.
func faulty(t *testing.T, host string, f fault) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host})
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f(w, r) {
			return
		}
		r.Host = host
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// kindOf is a request without identifiers.
func kindOf(r *http.Request) string {
	path := strings.TrimPrefix(r.URL.Path, "/api/2.0/")
	switch {
	case strings.HasPrefix(path, "mlflow-artifacts/artifacts/"):
		path = "artifacts/" + filepath.Base(path)
	case strings.HasPrefix(path, "mlflow/logged-models/m-"):
		_, rest, _ := strings.Cut(strings.TrimPrefix(path, "mlflow/logged-models/m-"), "/")
		path = "logged-models/ID/" + rest
	}
	return r.Method + " " + path
}

// A repetition waits as long as the server requests, and is no success if it is interrupted then.
func TestMLflowWaits(t *testing.T) {
	for _, limit := range []time.Duration{time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			m, calls := &client{}, 0
			const wait = 4 * time.Minute
			busy := retry.Delay(&registry.TransferError{Err: errors.New("busy")}, wait)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			err := m.repeat(ctx, func(context.Context) error {
				if calls++; calls == 1 {
					return busy
				}
				return nil
			})
			if interrupted := limit < wait; interrupted != (calls == 1) ||
				interrupted != errors.Is(err, context.DeadlineExceeded) || !interrupted && err != nil {
				t.Errorf("%d calls in %v: %v", calls, limit, err)
			}
		})
	}
}

// Every request of a push fails twice in one way or another and is repeated: the state is that of a push without
// faults.
func TestMLflowRetries(t *testing.T) {
	host := trackingServer(t)
	var mu sync.Mutex
	seen := map[string]int{}
	proxy := faulty(t, host, func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		n := seen[kindOf(r)]
		seen[kindOf(r)]++
		mu.Unlock()
		switch n {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		case 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		return false
	})
	a := named(t, "retries")
	var last int64
	o := registrytest.Quick
	o.Progress = func(done, _ int64) { last = done }
	p, err := registry.Push(t.Context(), registrytest.Parse(t, "mlflow://"+proxy+"/retries@champion"), a, o)
	if err != nil || p.Uploaded != a.Size() || last != a.Size() {
		t.Fatalf("%+v, %d, %v", p, last, err)
	}
	if got := fmt.Sprint(stateOf(t, host, "retries", a)); got != registered {
		t.Errorf("got %s, want %s", got, registered)
	}
	for kind, n := range seen {
		if n < 3 {
			t.Errorf("%s: %d requests", kind, n)
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %d kinds of requests: %v", len(seen), slices.Sorted(maps.Keys(seen)))
	}
}

// A push is killed at each kind of request, before the server has it and after, and repeated: the state is that of a
// push without interruption.
func TestMLflowOfAKilledPush(t *testing.T) {
	host := trackingServer(t)
	kinds := []string{
		"POST mlflow/runs/create", "POST mlflow/logged-models", "PUT artifacts/mlp.onnx", "PATCH logged-models/ID/tags",
		"PUT artifacts/MLmodel", "POST mlflow/runs/outputs", "POST mlflow/runs/update", "PATCH logged-models/ID/",
		"POST mlflow/registered-models/create", "POST mlflow/model-versions/create", "POST mlflow/registered-models/alias",
	}
	for i, kind := range kinds {
		before := i%2 == 0
		name := fmt.Sprintf("killed-%d", i)
		a := named(t, name)
		ctx, cancel := context.WithCancel(t.Context())
		killed := false
		proxy := faulty(t, host, func(w http.ResponseWriter, r *http.Request) bool {
			if killed {
				panic(http.ErrAbortHandler) // the process is dead: nothing it would still send arrives
			}
			if kindOf(r) != kind {
				return false
			}
			killed = true
			if !before {
				body, _ := io.ReadAll(r.Body)
				forward, _ := http.NewRequest(r.Method, "http://"+host+r.URL.String(), bytes.NewReader(body))
				forward.Header = r.Header
				if resp, err := http.DefaultClient.Do(forward); err == nil {
					resp.Body.Close()
				}
			}
			cancel()
			panic(http.ErrAbortHandler)
		})
		o := registrytest.Quick
		o.Parallel = 1
		if _, err := registry.Push(ctx, registrytest.Parse(t, "mlflow://"+proxy+"/"+name+"@champion"), a, o); err == nil ||
			!killed {
			t.Errorf("%s: the push was not killed: %v", kind, err)
			continue
		}
		p, err := registry.Push(t.Context(), registrytest.Parse(t, "mlflow://"+host+"/"+name+"@champion"), a,
			registrytest.Quick)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got := fmt.Sprint(stateOf(t, host, name, a)); got != registered {
			t.Errorf("%s: got %s, want %s", kind, got, registered)
		}
		if i > 3 && p.Uploaded != 0 {
			t.Errorf("%s: %d bytes were uploaded again", kind, p.Uploaded)
		}
	}
}

// A push that fails is marked, and leaves no registered model.
func TestMLflowOfAFailedPush(t *testing.T) {
	host := trackingServer(t)
	for i, kind := range []string{"PUT artifacts/MLmodel", "POST mlflow/model-versions/create"} {
		name := fmt.Sprintf("failed-%d", i)
		a := named(t, name)
		proxy := faulty(t, host, func(w http.ResponseWriter, r *http.Request) bool {
			if kindOf(r) != kind {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error_code": "PERMISSION_DENIED", "message": "read only"}`)
			return true
		})
		if _, err := registry.Push(t.Context(), registrytest.Parse(t, "mlflow://"+proxy+"/"+name), a,
			registrytest.Quick); err == nil || !strings.HasSuffix(err.Error(), proxy+" denies access: read only") {
			t.Errorf("%s: %v", kind, err)
		}
		m, err := open(registrytest.Parse(t, "mlflow://"+host+"/"+name), registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		if model, err := m.registered(t.Context()); model != nil || err != nil {
			t.Errorf("%s: left: %+v, %v", kind, model, err)
		}
	}
	m, err := open(registrytest.Parse(t, "mlflow://"+host+"/failed-0"), registrytest.Quick)
	if err != nil {
		t.Fatal(err)
	}
	p := &pusher{client: m, artifact: named(t, "failed-0")}
	if err := p.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	experiment, err := m.experiment(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.begin(t.Context(), experiment); err != nil || p.logged.Info.Status != loggedFailed {
		t.Errorf("%+v, %v", p.logged, err)
	}
}

// Each error is one line that names the cause.
func TestMLflowErrors(t *testing.T) {
	host := trackingServer(t)
	a := named(t, "errors")
	if _, err := registry.Push(t.Context(), registrytest.Parse(t, "mlflow://"+host+"/errors@champion"), a,
		registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	api(t, host, http.MethodPost, "experiments/create",
		fields{"name": "elsewhere", "artifact_location": "s3://bucket/path"}, nil)
	api(t, host, http.MethodPost, "registered-models/create", fields{"name": "empty"}, nil)
	api(t, host, http.MethodPost, "model-versions/create", fields{"name": "empty", "source": "s3://bucket/model"}, nil)
	push := func(ref string) error {
		_, err := registry.Push(t.Context(), registrytest.Parse(t, ref), named(t, "errors "+ref), registrytest.Quick)
		return err
	}
	list := func(ref string) error {
		_, err := registry.List(t.Context(), registrytest.Parse(t, ref), registrytest.Quick)
		return err
	}
	check := func(ref string) error {
		return registry.Check(t.Context(), registrytest.Parse(t, ref), registrytest.Quick)
	}
	corrupt := faulty(t, host, func(w http.ResponseWriter, r *http.Request) bool {
		if kindOf(r) == "GET artifacts/mlp.onnx" {
			fmt.Fprint(w, strings.Repeat("x", int(a.Files[0].Size)))
			return true
		}
		return false
	})
	edited := faulty(t, host, func(w http.ResponseWriter, r *http.Request) bool {
		if kindOf(r) == "GET artifacts/"+manifestName {
			fmt.Fprint(w, `{"files": []}`)
			return true
		}
		return false
	})
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer page.Close()
	other := strings.TrimPrefix(page.URL, "http://")
	for _, c := range []struct {
		name, user, password, experiment string
		err                              func() error
		want                             string
	}{
		{name: "no credentials", user: "-", err: func() error {
			return push("mlflow://" + host + "/errors")
		}, want: "requires credentials: set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"},
		{name: "wrong password", password: "wrong", err: func() error {
			return check("mlflow://" + host + "/errors")
		}, want: host + " refuses the credentials of MLFLOW_TRACKING_TOKEN"},
		{name: "read-only", user: conform.MLflowReader, err: func() error {
			return push("mlflow://" + host + "/errors")
		}, want: host + " denies access: Permission denied"},
		{name: "not proxied", experiment: "elsewhere", err: func() error {
			return check("mlflow://" + host + "/errors")
		}, want: `the server does not store artifacts: those of the experiment are at "s3://bucket/path`},
		{name: "unknown host", err: func() error {
			return check("mlflow://unknown.localhost:1/errors")
		}, want: "mlflow://unknown.localhost:1/errors: "},
		{name: "refused connection", err: func() error {
			return check("mlflow://127.0.0.1:1/errors")
		}, want: "cannot connect to 127.0.0.1:1: "},
		{name: "no loopback address", err: func() error {
			return check("mlflow://192.0.2.1/errors")
		}, want: "plain HTTP is allowed for loopback addresses only, not for 192.0.2.1"},
		{name: "another server", err: func() error {
			return check("mlflow://" + other + "/errors")
		}, want: other +
			" is no MLflow server, or its path is missing before the name of the model: the response is text/html"},
		{name: "another path", err: func() error {
			return check("mlflow://" + host + "/path/errors")
		}, want: "is no MLflow server of version 3, or its path is missing"},
		{name: "no model", err: func() error {
			return list("mlflow://" + host + "/none")
		}, want: `registered model "none": not found`},
		{name: "no alias", err: func() error {
			return list("mlflow://" + host + "/errors@none")
		}, want: `alias "none" of the registered model "errors": not found`},
		{name: "no version", err: func() error {
			return list("mlflow://" + host + "/errors@v9")
		}, want: `version 9 of the registered model "errors": not found`},
		{name: "version of another tool", err: func() error {
			return list("mlflow://" + host + "/empty")
		}, want: "version 1 was not pushed by mcompress"},
		{name: "push to a version", err: func() error {
			return push("mlflow://" + host + "/errors@v1")
		}, want: "a push makes a new version"},
		{name: "other manifest", err: func() error {
			return list("mlflow://" + edited + "/errors")
		}, want: manifestName + ": SHA-256 is "},
		{name: "other bytes", err: func() error {
			s, err := registry.List(t.Context(), registrytest.Parse(t, "mlflow://"+corrupt+"/errors"), registrytest.Quick)
			if err != nil {
				return err
			}
			dir := t.TempDir()
			_, err = s.Pull(t.Context(), dir, registrytest.Quick)
			if left, _ := os.ReadDir(dir); len(left) > 1 { // the folder of other files, from which a pull resumes
				t.Errorf("left: %v", left)
			}
			return err
		}, want: "mlp.onnx: SHA-256 is "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.user == "-" {
				t.Setenv("MLFLOW_TRACKING_USERNAME", "")
			} else if c.user != "" {
				t.Setenv("MLFLOW_TRACKING_USERNAME", c.user)
			}
			if c.password != "" {
				t.Setenv("MLFLOW_TRACKING_PASSWORD", c.password)
			}
			if c.experiment != "" {
				t.Setenv("MLFLOW_EXPERIMENT_NAME", c.experiment)
			}
			err := c.err()
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// The server has a token in place of a name and password.
func TestMLflowToken(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(responseError{Code: doesNotExist})
	}))
	defer s.Close()
	t.Setenv("MLFLOW_TRACKING_USERNAME", "")
	t.Setenv("MLFLOW_TRACKING_TOKEN", "secret")
	if err := registry.Check(t.Context(), registrytest.Parse(t, "mlflow://"+strings.TrimPrefix(s.URL, "http://")+"/m"),
		registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != "Bearer secret" {
		t.Errorf("got %q", got)
	}
}

// A file of the right size from an upload that did not complete is uploaded again.
func TestMLflowOfAWrongPart(t *testing.T) {
	host := trackingServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	proxy := faulty(t, host, func(_ http.ResponseWriter, r *http.Request) bool {
		if kindOf(r) != "PUT artifacts/mlp.onnx" {
			return false
		}
		forward, _ := http.NewRequest(r.Method, "http://"+host+r.URL.String(), bytes.NewReader(make([]byte, r.ContentLength)))
		forward.Header = r.Header
		if resp, err := http.DefaultClient.Do(forward); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%v, %v", resp, err)
		}
		cancel()
		panic(http.ErrAbortHandler)
	})
	a := named(t, "wrong part")
	if _, err := registry.Push(ctx, registrytest.Parse(t, "mlflow://"+proxy+"/wrong-part"), a,
		registrytest.Quick); err == nil {
		t.Fatal("the push was not interrupted")
	}
	ref := registrytest.Parse(t, "mlflow://"+host+"/wrong-part")
	if _, err := registry.Push(t.Context(), ref, a, registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	checkPull(t, ref, a)
}

// An upload that the server cuts is repeated.
func TestMLflowOfACutUpload(t *testing.T) {
	host := trackingServer(t)
	cuts := 0
	proxy := faulty(t, host, func(_ http.ResponseWriter, r *http.Request) bool {
		if kindOf(r) == "PUT artifacts/mlp.onnx" && cuts < 2 {
			cuts++
			_, _ = io.CopyN(io.Discard, r.Body, 1<<16)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	a := named(t, "cut")
	ref := registrytest.Parse(t, "mlflow://"+proxy+"/cut@champion")
	p, err := registry.Push(t.Context(), ref, a, registrytest.Quick)
	if err != nil || p.Uploaded != a.Size() || cuts != 2 {
		t.Fatalf("%+v, %d, %v", p, cuts, err)
	}
	checkPull(t, ref, a)
}
