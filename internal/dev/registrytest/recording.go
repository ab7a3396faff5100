package registrytest

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcompress/mcompress/registry"
)

// A Recording is what an honest registry answered, by the methods and addresses of the requests.
type Recording struct {
	answers map[string]answer
}

type answer struct {
	status int
	header http.Header
	body   string
}

// Record returns what the registry at host answers while a reference to another host in its place, made by ref, is listed
// and pulled.
func Record(t testing.TB, host string, ref func(host string) registry.Reference) *Recording {
	t.Helper()
	r := &Recording{answers: map[string]answer{}}
	var mu sync.Mutex
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host})
	proxy.ModifyResponse = func(resp *http.Response) error {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		header := resp.Header.Clone()
		header.Del("Date")
		mu.Lock()
		defer mu.Unlock()
		r.answers[requestKey(resp.Request)] = answer{resp.StatusCode, header, string(body)}
		return nil
	}
	s := httptest.NewServer(proxy)
	defer s.Close()
	l, err := registry.List(t.Context(), ref(strings.TrimPrefix(s.URL, "http://")), Quick)
	if err == nil {
		_, err = l.Pull(t.Context(), t.TempDir(), Quick)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func requestKey(r *http.Request) string { return r.Method + " " + r.URL.RequestURI() }

// keys are those of the answers, in order.
func (r *Recording) keys() []string { return slices.Sorted(maps.Keys(r.answers)) }

// with returns the recording with another body of an answer. Digests of the body that other answers and addresses have
// are those of the new one, and so are their digests in turn: only what it says is a lie.
func (r *Recording) with(key, body string) *Recording {
	changed := &Recording{maps.Clone(r.answers)}
	a := changed.answers[key]
	was := a.body
	a.body = body
	changed.answers[key] = a
	type change struct{ old, now string }
	todo := []change{{was, body}}
	for range 20 { // a registry refers to what was stored before, so that there is an end; lies may have none
		if len(todo) == 0 {
			break
		}
		c := todo[0]
		todo = todo[1:]
		replaced := strings.NewReplacer(Sum([]byte(c.old)), Sum([]byte(c.now)))
		answers := map[string]answer{}
		for key, a := range changed.answers {
			next := answer{a.status, http.Header{}, replaced.Replace(a.body)}
			for name, values := range a.header {
				for _, v := range values {
					next.header.Add(name, replaced.Replace(v))
				}
			}
			if next.body != a.body {
				todo = append(todo, change{a.body, next.body})
			}
			answers[replaced.Replace(key)] = next
		}
		changed.answers = answers
	}
	return changed
}

// serve answers a request as the registry did, by ranges too. The length is that of the body, which may be a lie.
func (r *Recording) serve(w http.ResponseWriter, req *http.Request) {
	a, ok := r.answers[requestKey(req)]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	for name, values := range a.header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	if req.Header.Get("Range") != "" && a.status == http.StatusOK {
		http.ServeContent(w, req, "", time.Time{}, strings.NewReader(a.body))
		return
	}
	if req.Method == http.MethodHead {
		w.Header()["Content-Length"] = a.header["Content-Length"]
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}
