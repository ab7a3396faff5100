package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// faulty starts an S3 server and a proxy with faults, which the environment names: fault returns true if it has
// answered.
func faulty(t *testing.T, fault func(http.ResponseWriter, *http.Request) bool) (*settings, string) {
	t.Helper()
	endpoint, folder := conform.S3(t, "bucket")
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // which is signed
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fault(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	credentialsOf(t, server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", conform.S3AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", conform.S3SecretKey)
	return newSettings(20 * time.Millisecond), folder
}

func none(http.ResponseWriter, *http.Request) bool { return false }

// uploads are files of these contents in a folder, for the same names in the bucket.
func uploads(t *testing.T, contents map[string][]byte, order ...string) (files []Upload) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range order {
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, contents[name], 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, Upload{Path: path, URL: "s3://bucket/" + name, SHA256: strings.Repeat("a", 64)})
	}
	return files
}

// incomplete is the number of uploads that are neither complete nor aborted.
func (s *settings) incomplete(t *testing.T) (n int) {
	t.Helper()
	c, err := s.client(t.Context(), "s3://bucket/x")
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Upload []struct{ UploadId string } }
	r := s3Request{method: http.MethodGet, object: object{bucket: "bucket"}, query: url.Values{"uploads": {""}}}
	if err := c.xml(context.Background(), r, &out); err != nil {
		t.Fatal(err)
	}
	return len(out.Upload)
}

// The names below a folder of a bucket are listed in spite of a 503, and none of other folders.
func TestList(t *testing.T) {
	requests := 0
	s, _ := faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("list-type") != "2" {
			return false
		}
		if requests++; requests == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	contents := map[string][]byte{"a/1.json": nil, "a/b/c d+ä.json": []byte("x"), "ab/2.json": nil, "3.json": nil}
	if err := s.publish(t.Context(), uploads(t, contents, "a/1.json", "a/b/c d+ä.json", "ab/2.json",
		"3.json")); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string][]string{
		"s3://bucket/a": {"1.json", "b/c d+ä.json"}, "s3://bucket/a/": {"1.json", "b/c d+ä.json"},
		"s3://bucket": {"3.json", "a/1.json", "a/b/c d+ä.json", "ab/2.json"}, "s3://bucket/none/": nil,
	} {
		if got, err := s.list(t.Context(), url); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", url, got, err, want)
		}
	}
	for _, url := range []string{"https://host/a/", "s3:///a/", "s3://missing/a/"} {
		if got, err := s.list(t.Context(), url); err == nil {
			t.Errorf("%s: %q", url, got)
		}
	}
}

// Published files have their contents and digests, in spite of 503 and connections that are cut, and leave no
// incomplete upload.
func TestPublish(t *testing.T) {
	var n atomic.Int64
	settings, folder := faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		switch count := n.Add(1); {
		case r.Method == http.MethodPut && count%4 == 0:
			status(w, http.StatusServiceUnavailable, "SlowDown")
			return true
		case r.Method == http.MethodPut && count%4 == 1:
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	contents := map[string][]byte{"a/m.data": randomBytes(2*partSize + 5), "a/empty": nil, "a/m.html": []byte("page"),
		"a/m.onnx": []byte("model")}
	if err := settings.publish(t.Context(),
		uploads(t, contents, "a/m.data", "a/empty", "a/m.html", "a/m.onnx")); err != nil {
		t.Fatal(err)
	}
	for name, want := range contents {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		f, err := settings.opened(t.Context(), "s3://bucket/"+name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size())); err != nil || !bytes.Equal(got, want) ||
			len(want) > 0 && f.SHA256() != strings.Repeat("a", 64) {
			t.Errorf("%s is read as %d bytes with the digest %q: %v", name, len(got), f.SHA256(), err)
		}
		if got := f.meta.Get("Content-Type"); strings.HasPrefix(got, "text/html") != strings.HasSuffix(name, ".html") {
			t.Errorf("%s has the type %q", name, got)
		}
	}
	if n := settings.incomplete(t); n != 0 {
		t.Errorf("%d incomplete uploads", n)
	}
}

// After an upload that fails nothing has appeared and nothing is left, and an upload that a killed process left is
// removed by the next one.
func TestFailedPublish(t *testing.T) {
	failing := atomic.Bool{}
	settings, folder := faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		if failing.Load() && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "m.onnx") {
			status(w, http.StatusForbidden, "ExpiredToken")
			return true
		}
		return false
	})
	files := uploads(t, map[string][]byte{"a/m.data": []byte("data"), "a/m.onnx": []byte("model")}, "a/m.data", "a/m.onnx")
	failing.Store(true)
	var e *Error
	if err := settings.publish(t.Context(), files); !errors.As(err, &e) || !strings.Contains(err.Error(), "expired") {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "a", "m.data")); err == nil {
		t.Error("the data has appeared")
	}
	if n := settings.incomplete(t); n != 0 {
		t.Errorf("%d incomplete uploads", n)
	}
	failing.Store(false)
	if _, err := settings.begin(t.Context(), files[0]); err != nil { // as a killed process does
		t.Fatal(err)
	}
	if n := settings.incomplete(t); n != 1 {
		t.Fatalf("%d incomplete uploads", n)
	}
	if err := settings.publish(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	if n := settings.incomplete(t); n != 0 {
		t.Errorf("%d incomplete uploads after the retry", n)
	}
}

// An interruption ends an upload, and nothing is left.
func TestInterruptedPublish(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	settings, _ := faulty(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			cancel()
		}
		return false
	})
	files := uploads(t, map[string][]byte{"m.onnx": []byte("model")}, "m.onnx")
	if err := settings.publish(ctx, files); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if n := settings.incomplete(t); n != 0 {
		t.Errorf("%d incomplete uploads", n)
	}
}

// A real server refuses to continue with a replaced object, with wrong credentials, and in a bucket that is not there;
// signed URLs are read.
func TestServer(t *testing.T) {
	settings, _ := faulty(t, none)
	publish := func(content []byte) {
		t.Helper()
		if err := settings.publish(t.Context(), uploads(t, map[string][]byte{"m.bin": content}, "m.bin")); err != nil {
			t.Fatal(err)
		}
	}
	content := randomBytes(4 * firstRead)
	publish(content)
	f, err := settings.opened(t.Context(), "s3://bucket/m.bin")
	if err != nil {
		t.Fatal(err)
	}
	c, err := settings.client(t.Context(), "s3://bucket/m.bin")
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodGet, c.url(object{"bucket", "m.bin"}, "us-east-1").String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	signed := signer.PreSignV4(*r, conform.S3AccessKey, conform.S3SecretKey, "", "us-east-1", 60)
	g, err := settings.opened(t.Context(), signed.URL.String())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(io.NewSectionReader(g, 0, g.Size())); err != nil || !bytes.Equal(got, content) ||
		strings.Contains(g.Path(), "?") {
		t.Errorf("%s: %d bytes, %v", g.Path(), len(got), err)
	}
	publish(randomBytes(4*firstRead + 1))
	for _, f := range []*File{f, g} {
		if _, err := f.ReadAt(make([]byte, 10), 3*firstRead); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: error %v", f.Path(), err)
		}
	}
	if err := settings.checkWritable(t.Context(), "s3://other/m.bin"); err == nil ||
		!strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("error %v", err)
	}
	if _, err := c.head(t.Context(), object{"bucket", "m.bin"}); err != nil {
		t.Error(err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
	if _, err := settings.opened(t.Context(), "s3://bucket/m.bin"); err == nil ||
		!strings.Contains(err.Error(), "access is denied") || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("error %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if _, err := settings.opened(t.Context(), "s3://bucket/m.bin"); err == nil ||
		!strings.Contains(err.Error(), "no credentials found") {
		t.Errorf("error %v", err)
	}
}
