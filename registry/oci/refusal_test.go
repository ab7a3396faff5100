package oci

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

// user is a line of htpasswd for the password "secret".
const user = "user:$2a$04$qnfiunwyIGnv6JbU2EWR..6pkWW5ueBGM1gkjKqsc2IyxqsZUMwVK\n"

// withPassword returns the host of Debian's registry that requires the credentials of user.
func withPassword(t *testing.T) string {
	t.Helper()
	path := filepath.Join(registrytest.Written(t, map[string]string{"htpasswd": user}), "htpasswd")
	return conform.Distribution(t, t.TempDir(), "auth:\n  htpasswd: {realm: test, path: "+path+"}\n")
}

// login writes a Docker configuration and lets the test use it.
func login(t *testing.T, config string) {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", registrytest.Written(t, map[string]string{"config.json": config}))
}

func auths(host, password string) string {
	return fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("user:"+password)))
}

func TestOCICredentials(t *testing.T) {
	host := withPassword(t)
	ref := registrytest.Parse(t, "oci://"+host+"/models/m:1")
	push := func() error {
		if err := registry.Check(t.Context(), ref, registrytest.Quick); err != nil {
			return err
		}
		_, err := registry.Push(t.Context(), ref, registrytest.Fixture(t, "mlp"), registrytest.Quick)
		return err
	}
	for _, c := range []struct{ config, want string }{
		{"{}", "requires credentials: docker login " + host},
		{auths("other.example.com", "secret"), "requires credentials: docker login " + host},
		{auths(host, "wrong"), "refuses the credentials, or requires some: docker login " + host},
	} {
		login(t, c.config)
		for _, err := range []error{push(), listed(t, ref)} {
			if !registrytest.IsA[*registry.TransferError](err) || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "wrong") {
				t.Errorf("%s: got %v", c.config, err)
			}
		}
	}
	login(t, auths(host, "secret"))
	if err := push(); err != nil {
		t.Fatal(err)
	}
	if err := listed(t, ref); err != nil {
		t.Error(err)
	}
	login(t, "{")
	if err := listed(t, ref); err == nil || !strings.Contains(err.Error(), "credentials of Docker") {
		t.Errorf("got %v", err)
	}
}

// Credentials of a helper program, as Docker Desktop and cloud registries have them.
func TestOCICredentialHelper(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the helper is a shell script")
	}
	host := withPassword(t)
	dir := t.TempDir()
	helper := "#!/bin/sh\nread server\necho \"{\\\"ServerURL\\\": \\\"$server\\\", \\\"Username\\\": \\\"user\\\", " +
		"\\\"Secret\\\": \\\"secret\\\"}\"\n"
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-test"), []byte(helper), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	login(t, fmt.Sprintf(`{"credHelpers": {%q: "test"}}`, host))
	if _, err := registry.Push(t.Context(), registrytest.Parse(t, "oci://"+host+"/models/m:1"),
		registrytest.Fixture(t, "mlp"), registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	login(t, fmt.Sprintf(`{"credHelpers": {%q: "absent"}}`, host))
	if err := listed(t, registrytest.Parse(t, "oci://"+host+"/models/m:1")); err == nil ||
		!strings.Contains(err.Error(), "docker-credential-absent") {
		t.Errorf("got %v", err)
	}
}

func listed(t *testing.T, ref registry.Reference) error {
	_, err := registry.List(t.Context(), ref, registrytest.Quick)
	return err
}

func TestOCIReadOnly(t *testing.T) {
	root := t.TempDir()
	full := registrytest.Parse(t, "oci://"+conform.Distribution(t, root, "")+"/models/m:1")
	if _, err := registry.Push(t.Context(), full, registrytest.Fixture(t, "mlp"), registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	ref := registrytest.Parse(t, "oci://"+conform.Distribution(t, root,
		"  maintenance: {readonly: {enabled: true}}\n")+"/models/m:2")
	_, err := registry.Push(t.Context(), ref, registrytest.Fixture(t, "mlp"), registrytest.Quick)
	for _, err := range []error{err, registry.Check(t.Context(), ref, registrytest.Quick)} {
		if !registrytest.IsA[*registry.TransferError](err) || !strings.Contains(err.Error(), "the registry is read-only") {
			t.Errorf("got %v", err)
		}
	}
	ref.Tag = "1"
	if err := listed(t, ref); err != nil {
		t.Error(err)
	}
}

func TestOCIOfAnUnknownHost(t *testing.T) {
	o := registrytest.Quick
	o.PlainHTTP = false
	_, err := registry.List(t.Context(), registrytest.Parse(t, "oci://registry.invalid/m:1"), o)
	if !registrytest.IsA[*registry.TransferError](err) || !strings.Contains(err.Error(), "registry.invalid") {
		t.Errorf("got %v", err)
	}
}

func TestPushRequiresATag(t *testing.T) {
	ref := registrytest.Parse(t, "oci://127.0.0.1/m@sha256:"+registrytest.Sum(nil))
	if err := registry.Check(t.Context(), ref, registrytest.Quick); !registrytest.IsA[*registry.ReferenceError](err) {
		t.Errorf("got %v", err)
	}
	if _, err := registry.Push(t.Context(), ref, registrytest.Fixture(t, "mlp"),
		registrytest.Quick); !registrytest.IsA[*registry.ReferenceError](err) {
		t.Errorf("got %v", err)
	}
}

// Tokens of an authorization server, which expire during a push: also while a file is uploaded.
func TestOCITokens(t *testing.T) {
	s := withReferrers(t)
	var issued, uses int
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.URL.Path == "/token" {
			user, password, _ := r.BasicAuth()
			scope := r.URL.Query().Get("scope")
			if user != "user" || password != "secret" || !strings.HasPrefix(scope, "repository:models/m:pull") {
				t.Errorf("token for %q: %s, %s", scope, user, password)
			}
			issued++
			uses = 0
			fmt.Fprintf(w, `{"token": "%d"}`, issued)
			return true
		}
		if uses++; r.Header.Get("Authorization") == fmt.Sprintf("Bearer %d", issued) && uses <= 5 {
			return false
		}
		w.Header().Set("WWW-Authenticate",
			fmt.Sprintf(`Bearer realm="http://%s/token",service="test",scope="repository:models/m:pull,push"`, s.host))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}, nil)
	login(t, auths(s.host, "secret"))
	a := registrytest.Complete(t)
	o := registrytest.Quick
	o.Parallel = 1
	var last int64
	o.Progress = func(done, _ int64) { last = done }
	p, err := registry.Push(t.Context(), s.ref(t, "models/m:1"), a, o)
	if err != nil || last != p.Size {
		t.Fatalf("%v, progress %d", err, last)
	}
	l, err := registry.List(t.Context(), p.Reference, o)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := l.Pull(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	registrytest.Same(t, dir, l.Files)
	if issued < 3 {
		t.Errorf("%d tokens", issued)
	}
}

// Without a home folder there are no credentials, and none are needed for a public registry.
func TestOCIWithoutHome(t *testing.T) {
	for _, name := range []string{"HOME", "USERPROFILE", "home", "DOCKER_CONFIG"} {
		t.Setenv(name, "")
	}
	pushed(t, withReferrers(t), registrytest.Fixture(t, "mlp"))
}
