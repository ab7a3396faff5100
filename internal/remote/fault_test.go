package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/retry"
)

// A store serves one object by ranges, with faults.
type store struct {
	content  []byte
	etag     string
	requests atomic.Int64
	// of the n-th request, from 1; false to serve it. nil for none
	fault func(n int64, w http.ResponseWriter, r *http.Request) bool
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.requests.Add(1)
	if s.fault != nil && s.fault(n, w, r) {
		return
	}
	s.serve(w, r)
}

func (s *store) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", s.etag)
	http.ServeContent(w, r, "", time.Unix(1000, 0), bytes.NewReader(s.content))
}

// at starts the server, and returns the URL of its object and settings with short pauses. S3 is requested by
// AWS_ENDPOINT_URL.
func (s *store) at(t *testing.T, scheme string) (string, *settings) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	if s.etag == "" {
		s.etag = `"one"`
	}
	if scheme == s3Scheme {
		credentialsOf(t, server.URL)
		return "s3://bucket/dir/object.bin", newSettings(time.Millisecond)
	}
	return server.URL + "/dir/object.bin?signature=secret%2Bvalue", newSettings(time.Millisecond)
}

// credentialsOf sets the environment for a server of S3.
func credentialsOf(t *testing.T, endpoint string) {
	t.Helper()
	t.Setenv("AWS_ENDPOINT_URL", endpoint)
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "topsecret")
	t.Setenv("AWS_SESSION_TOKEN", "")
}

func (s *settings) opened(ctx context.Context, url string) (*File, error) {
	loc, err := parse(url)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, loc, &buffers{})
}

func randomBytes(n int) []byte {
	random := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	_, _ = random.Read(b)
	return b
}

func TestReadAt(t *testing.T) {
	content := randomBytes(5*segment + 12345)
	for _, scheme := range []string{httpScheme, s3Scheme} {
		s := &store{content: content}
		url, settings := s.at(t, scheme)
		f, err := settings.opened(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range [][2]int{{0, 10}, {100, firstRead}, {segment, 3 * segment}, {len(content) - 5, 5},
			{len(content) - 5, 10}, {len(content), 1}, {77, 1}} {
			got := make([]byte, r[1])
			n, err := f.ReadAt(got, int64(r[0]))
			want := min(r[1], len(content)-r[0])
			if n != want || (err == io.EOF) != (n < r[1]) || err != nil && err != io.EOF ||
				!bytes.Equal(got[:n], content[r[0]:r[0]+n]) {
				t.Errorf("%s: %d bytes at %d: %d, %v", scheme, r[1], r[0], n, err)
			}
		}
		if _, err := f.ReadAt(make([]byte, 1), -1); err == nil {
			t.Error("a negative offset is no error")
		}
	}
}

// Two readers of a large file get their bytes by requests of segments, each byte once, in a bounded number of buffers.
func TestReadAhead(t *testing.T) {
	content := randomBytes(16 * segment)
	s := &store{content: content}
	url, settings := s.at(t, httpScheme)
	f, err := settings.opened(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	half := int64(len(content) / 2)
	f.Plan([][2]int64{{0, half}, {half, half}})
	var wait sync.WaitGroup
	for i := range int64(2) {
		wait.Go(func() {
			got, err := io.ReadAll(io.NewSectionReader(f, i*half, half))
			if err != nil || !bytes.Equal(got, content[i*half:(i+1)*half]) {
				t.Errorf("half %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	wait.Wait()
	requests, received := f.requests.Load(), f.received.Load()
	if received > int64(len(content))+firstRead || requests > 40 {
		t.Errorf("%d requests, %d bytes for a file of %d", requests, received, len(content))
	}
	if f.buffers.allocated > bufferCount || len(f.buffers.inUse()) != 0 {
		t.Errorf("%d buffers, %d segments in use", f.buffers.allocated, len(f.buffers.inUse()))
	}
}

// Read-ahead does not exceed the payload, and closing a file frees its buffers.
func TestPlan(t *testing.T) {
	s := &store{content: randomBytes(8 * segment)}
	url, settings := s.at(t, httpScheme)
	f, err := settings.opened(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	f.Plan([][2]int64{{segment, segment + segment/2}})
	if _, err := f.ReadAt(make([]byte, 1000), segment); err != nil {
		t.Fatal(err)
	}
	for _, g := range f.buffers.inUse() {
		<-g.ready
		if g.end > 2*segment+segment/2 {
			t.Errorf("bytes %d to %d are read ahead", g.off, g.end)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for len(f.buffers.inUse()) > 0 { // the last goroutine frees its own
		time.Sleep(time.Millisecond)
	}
}

// inUse are the segments in memory.
func (b *buffers) inUse() []*segmentOf {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.segments)
}

// status responds with an error of S3.
func status(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>because</Message></Error>", code)
}

// cutOff sends half of a response and closes the connection.
func (s *store) cutOff(w http.ResponseWriter, r *http.Request) {
	recorder := httptest.NewRecorder()
	s.serve(recorder, r)
	for name, values := range recorder.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes()[:recorder.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// Faults that pass: reading succeeds.
func TestTransientFaults(t *testing.T) {
	for name, fault := range map[string]func(s *store, w http.ResponseWriter, r *http.Request){
		"slow down": func(_ *store, w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusServiceUnavailable, "SlowDown")
		},
		"429": func(_ *store, w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusTooManyRequests, "TooMany")
		},
		"cut":       func(s *store, w http.ResponseWriter, r *http.Request) { s.cutOff(w, r) },
		"no answer": func(*store, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"wrong range": func(s *store, w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Range", "bytes=7-1000")
			s.serve(w, r)
		},
	} {
		for _, scheme := range []string{httpScheme, s3Scheme} {
			t.Run(name+"/"+scheme, func(t *testing.T) {
				s := &store{content: randomBytes(3 * segment)}
				s.fault = func(n int64, w http.ResponseWriter, r *http.Request) bool {
					if n%3 == 0 {
						return false
					}
					fault(s, w, r)
					return true
				}
				url, settings := s.at(t, scheme)
				f, err := settings.opened(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
				if err != nil || !bytes.Equal(got, s.content) {
					t.Fatalf("%d bytes, %v", len(got), err)
				}
			})
		}
	}
}

// Faults that stay, or that no other attempt changes: an error within bounded attempts, without the signature of the
// URL.
func TestFaults(t *testing.T) {
	changed := func(s *store, w http.ResponseWriter, r *http.Request) {
		other := &store{content: s.content, etag: `"two"`}
		other.serve(w, r)
	}
	for name, c := range map[string]struct {
		fault    func(s *store, w http.ResponseWriter, r *http.Request)
		is       error
		text     string
		most     int64 // requests
		fromBody bool  // the first request is served
	}{
		"slow down": {fault: func(_ *store, w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusServiceUnavailable, "SlowDown")
		}, text: "8 attempts failed, the last one with status 503", most: retry.Attempts},
		"cut": {fault: func(s *store, w http.ResponseWriter, r *http.Request) {
			s.cutOff(w, r)
		}, text: "the response ended after", most: retry.Attempts + 1, fromBody: true},
		"expired": {fault: func(_ *store, w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusForbidden, "ExpiredToken")
		},
			text: "status 403 ExpiredToken: because (the credentials have expired: renew them)", most: 1},
		"missing": {fault: func(_ *store, w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusNotFound, "NoSuchKey")
		}, is: fs.ErrNotExist, text: "status 404 NoSuchKey", most: 1},
		"changed": {fault: changed, is: ErrChanged, text: "the object was replaced while it was read", most: 2,
			fromBody: true},
		"changed, without If-Match": {fault: func(s *store, w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-Match")
			changed(s, w, r)
		}, is: ErrChanged, text: "the object was replaced while it was read", most: 2, fromBody: true},
		"short range": {fault: func(s *store, w http.ResponseWriter, r *http.Request) {
			start, _, _ := strings.Cut(r.Header.Get("Range"), "-")
			r.Header.Set("Range", start+"-"+strconv.Itoa(segment+9))
			s.serve(w, r)
		}, is: errRange, text: "another range", most: retry.Attempts + 1, fromBody: true},
		"changed size": {fault: func(s *store, w http.ResponseWriter, r *http.Request) {
			other := &store{content: s.content[:len(s.content)-1], etag: s.etag}
			other.serve(w, r)
		}, is: ErrChanged, text: "the object was replaced", most: 2, fromBody: true},
		"wrong range": {fault: func(s *store, w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Range", "bytes=1-5")
			s.serve(w, r)
		}, is: errRange, text: "another range than the requested one", most: retry.Attempts},
		"endless": {fault: func(s *store, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", s.etag)
			w.Header().Set("Last-Modified", time.Unix(1000, 0).UTC().Format(http.TimeFormat))
			w.Header().Set("Content-Range", "bytes 1-"+strconv.Itoa(1<<40)+"/"+strconv.Itoa(1<<41))
			w.WriteHeader(http.StatusPartialContent)
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, is: errRange, text: "another range", most: retry.Attempts},
	} {
		for _, scheme := range []string{httpScheme, s3Scheme} {
			t.Run(name+"/"+scheme, func(t *testing.T) {
				s := &store{content: randomBytes(2 * segment)}
				s.fault = func(n int64, w http.ResponseWriter, r *http.Request) bool {
					if n == 1 && c.fromBody {
						return false
					}
					c.fault(s, w, r)
					return true
				}
				url, settings := s.at(t, scheme)
				f, err := settings.opened(t.Context(), url)
				if err == nil {
					_, err = io.ReadAll(io.NewSectionReader(f, segment, segment))
				}
				var e *Error
				if !errors.As(err, &e) || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
					t.Fatalf("error %v, want %q", err, c.text)
				}
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("the error has a secret: %v", err)
				}
				if n := s.requests.Load(); n > c.most {
					t.Errorf("%d requests, at most %d are expected", n, c.most)
				}
			})
		}
	}
}

// Servers without what ranges need.
func TestUnsuitableServers(t *testing.T) {
	for text, serve := range map[string]http.HandlerFunc{
		"does not support range requests": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("all")) },
		"neither ETag nor Last-Modified": func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader("all"))
		},
	} {
		server := httptest.NewServer(serve)
		defer server.Close()
		if _, err := newSettings(time.Millisecond).opened(t.Context(), server.URL+"/x"); err == nil ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q", err, text)
		}
	}
}

// A file that is identified by its time of modification, and an empty one.
func TestLastModified(t *testing.T) {
	var at atomic.Int64
	at.Store(1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Unix(at.Load(), 0), bytes.NewReader(make([]byte, 3*firstRead)))
	}))
	defer server.Close()
	f, err := newSettings(time.Millisecond).opened(t.Context(), server.URL+"/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 10), 2*firstRead); err != nil {
		t.Fatal(err)
	}
	at.Store(2000)
	if _, err := f.ReadAt(make([]byte, 10), firstRead); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v", err)
	}
	for _, scheme := range []string{httpScheme, s3Scheme} {
		url, settings := (&store{}).at(t, scheme)
		if f, err := settings.opened(t.Context(), url); err != nil || f.Size() != 0 {
			t.Errorf("an empty object of %s: %v", scheme, err)
		}
	}
}

// An interruption ends the attempts.
func TestInterruption(t *testing.T) {
	s := &store{fault: func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
		status(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	}}
	url, settings := s.at(t, s3Scheme)
	settings.pause = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := settings.opened(ctx, url); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestRedirects(t *testing.T) {
	for _, c := range []struct {
		from, to string
		hops     int
		allowed  bool
	}{
		{"https://models.example/m", "https://storage.example/m?signature=x", 1, true},
		{"https://models.example/m", "https://models.example/m", 6, false},
		{"https://models.example/m", "http://models.example/m", 1, false},
		{"https://models.example/m", "http://127.0.0.1/m", 1, false},
		{"https://models.example/m", "https://127.0.0.1/m", 1, false},
		{"https://models.example/m", "https://169.254.169.254/latest", 1, false},
		{"https://models.example/m", "https://10.0.0.1/m", 1, false},
		{"https://models.example/m", "ftp://models.example/m", 1, false},
		{"http://127.0.0.1:1/m", "http://127.0.0.1:2/m", 1, true},
		{"http://127.0.0.1:1/m", "http://models.example/m", 1, false},
	} {
		request := func(url string) *http.Request {
			r, err := http.NewRequest(http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		via := make([]*http.Request, c.hops)
		for i := range via {
			via[i] = request(c.from)
		}
		if err := checkRedirect(request(c.to), via); (err == nil) != c.allowed {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
}
