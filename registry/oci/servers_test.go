package oci

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

// TestMain keeps the credentials of the user out of the tests.
func TestMain(m *testing.M) {
	if err := os.Setenv("DOCKER_CONFIG", filepath.Join(os.TempDir(), "mcompress-no-docker-config")); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

// A server is a registry that is reached through a proxy, which records requests and may change responses.
type server struct {
	host string // of the proxy

	mu       sync.Mutex
	requests []string                                                 // method and path
	fault    func(w http.ResponseWriter, r *http.Request) (done bool) // before the registry; may be nil
	change   func(*http.Response) error                               // after it; may be nil
}

// proxied returns a server for a registry at target.
func proxied(t testing.TB, target string) *server {
	s := &server{}
	proxy := &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: target})
		r.Out.Host = r.In.Host // locations are those of the proxy
	}}
	proxy.ModifyResponse = func(r *http.Response) error {
		s.mu.Lock()
		change := s.change
		s.mu.Unlock()
		if change != nil {
			return change(r)
		}
		return nil
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		fault := s.fault
		s.mu.Unlock()
		if fault == nil || !fault(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	s.host = strings.TrimPrefix(front.URL, "http://")
	return s
}

// set changes the faults.
func (s *server) set(fault func(http.ResponseWriter, *http.Request) bool, change func(*http.Response) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.change, s.requests = fault, change, nil
}

// count is the number of requests whose method and path contain the text.
func (s *server) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.Contains(r, text) {
			n++
		}
	}
	return n
}

// withReferrers returns a registry in this process that has the referrers API.
func withReferrers(t testing.TB) *server {
	back := httptest.NewServer(ggcr.New(ggcr.WithReferrersSupport(true), ggcr.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(back.Close)
	return proxied(t, strings.TrimPrefix(back.URL, "http://"))
}

// distribution returns Debian's registry, which has no referrers API.
func distribution(t testing.TB) *server { return proxied(t, conform.Distribution(t, t.TempDir(), "")) }

// eachServer runs a test on both registries, in parallel with others: Debian's waits for the disk.
func eachServer(t *testing.T, test func(t *testing.T, s *server)) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *server{"referrers": withReferrers, "distribution": distribution} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func (s *server) ref(t testing.TB, name string) registry.Reference {
	t.Helper()
	return registrytest.Parse(t, "oci://"+s.host+"/"+name)
}

// get requests a path and returns the response's body.
func (s *server) get(t *testing.T, path string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

// put stores a blob or, with a media type, a manifest of the given name.
func (s *server) put(t *testing.T, repository, name, mediaType string, content []byte) {
	t.Helper()
	address := "http://" + s.host + "/v2/" + repository + "/manifests/" + name
	if mediaType == "" {
		resp, err := http.Post("http://"+s.host+"/v2/"+repository+"/blobs/uploads/", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		at, err := resp.Location()
		if err != nil {
			t.Fatal(err)
		}
		q := at.Query()
		q.Set("digest", "sha256:"+registrytest.Sum(content))
		at.RawQuery = q.Encode()
		address, mediaType = at.String(), "application/octet-stream"
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", address, resp.Status)
	}
}

// object decodes JSON.
func object(t *testing.T, text []byte) (o map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}
