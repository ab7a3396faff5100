package remote

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A server that refuses what changes objects: nothing that was not stored counts as stored, and each error names the
// object.
func TestRefusedChanges(t *testing.T) {
	s := &store{content: []byte("old")}
	s.fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPut || r.Method == http.MethodPost || r.Method == http.MethodDelete:
			_, _ = io.Copy(io.Discard, r.Body)
			status(w, http.StatusForbidden, "AccessDenied")
		case r.URL.Query().Has("list-type"):
			_, _ = io.WriteString(w, `<ListBucketResult><Name>bucket</Name><KeyCount>1</KeyCount><Contents><Key>plan/parts/x</Key><Size>3</Size></Contents></ListBucketResult>`)
		case r.Method == http.MethodGet && r.URL.Query().Has("uploads"):
			_, _ = io.WriteString(w, `<ListMultipartUploadsResult/>`)
		default:
			return false
		}
		return true
	}
	_, settings := s.at(t, s3Scheme)
	m := newMirror(settings, t.TempDir(), "s3://bucket/plan/parts")
	if err := os.WriteFile(filepath.Join(m.dir, "file"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	loc, err := parse("s3://bucket/plan/parts/log")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"push":   func() error { return m.Push(t.Context(), "log", strings.NewReader("new"), 3) },
		"store":  func() error { return m.Store(t.Context(), "file") },
		"remove": func() error { return m.Remove(t.Context()) },
		"create": func() error {
			return settings.create(t.Context(), loc, io.NewSectionReader(strings.NewReader("new"), 0, 3))
		},
	} {
		var e *Error
		if err := change(); !errors.As(err, &e) || !strings.Contains(err.Error(), "s3://bucket/plan/parts") ||
			!strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := m.storedLength("log"); n != 0 {
		t.Errorf("%d bytes of a log that was refused count as pushed", n)
	}
}

// Requests are signed for the region of the environment, and for us-east-1, as other servers than Amazon's have it,
// where none is set.
func TestRegionOfSignatures(t *testing.T) {
	var mu sync.Mutex
	var signed []string
	s := &store{content: []byte("content")}
	s.fault = func(_ int64, _ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		signed = append(signed, r.Header.Get("Authorization"))
		return false
	}
	url, _ := s.at(t, s3Scheme)
	for region, want := range map[string]string{"eu-central-9": "/eu-central-9/s3/", "": "/us-east-1/s3/"} {
		t.Setenv("AWS_REGION", region)
		t.Setenv("AWS_DEFAULT_REGION", "")
		signed = nil
		f, err := newSettings(time.Millisecond).opened(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		for _, header := range signed {
			if !strings.Contains(header, want) {
				t.Errorf("region %q: %q", region, header)
			}
		}
		if len(signed) == 0 {
			t.Error("no request")
		}
	}
}

// What an upload that fails has sent is removed, again while the server still adds parts to it. An upload without parts
// is removed once.
func TestAbortedUploads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path      string
		there     int64 // times that parts are there after an abort
		abortions int64
		lists     int64
	}{{path, 0, 1, 1}, {path, 2, 3, 3}, {path, 99, aborts, aborts}, {path + ".none", 99, 1, 0}} {
		var aborted, listed atomic.Int64
		s := &store{}
		s.fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			q := r.URL.Query()
			switch {
			case r.Method == http.MethodPost && q.Has("uploads"):
				_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>key</Key><UploadId>id</UploadId></InitiateMultipartUploadResult>`)
			case r.Method == http.MethodGet && q.Has("uploads"):
				_, _ = io.WriteString(w, `<ListMultipartUploadsResult/>`)
			case r.Method == http.MethodDelete && q.Get("uploadId") == "id":
				aborted.Add(1)
				w.WriteHeader(http.StatusNoContent)
			case r.Method == http.MethodGet && q.Get("uploadId") == "id" && listed.Add(1) <= c.there:
				_, _ = io.WriteString(w, `<ListPartsResult/>`)
			case r.Method == http.MethodPut:
				_, _ = io.Copy(io.Discard, r.Body)
				status(w, http.StatusForbidden, "AccessDenied")
			default:
				status(w, http.StatusNotFound, "NoSuchUpload")
			}
			return true
		}
		_, settings := s.at(t, s3Scheme)
		err := settings.publish(t.Context(), []Upload{{Path: c.path, URL: "s3://bucket/key"}})
		if err == nil || aborted.Load() != c.abortions || listed.Load() != c.lists {
			t.Errorf("%s, parts %d times: %d aborted, %d listed, %v", filepath.Base(c.path), c.there, aborted.Load(),
				listed.Load(), err)
		}
	}
}

// A file of any size is all of its parts, which are no more than S3 accepts, and no smaller than is efficient.
func TestParts(t *testing.T) {
	const whole = maxParts * partSize
	for total, want := range map[int64]int64{0: 1, 1: 1, partSize: 1, partSize + 1: 2, whole - partSize: maxParts - 1,
		whole: maxParts, whole + 1: maxParts, 2 * whole: maxParts, 2*whole + 1: maxParts, 5 << 40: maxParts} {
		number, each := partsOf(total, partSize)
		if number > want || number < want*9/10 || each < partSize || total > whole && each > total/maxParts+1 {
			t.Errorf("%d bytes: %d parts of %d, want %d", total, number, each, want)
		}
		if number*each < total || (number-1)*each >= max(1, total) {
			t.Errorf("%d bytes are not %d parts of %d", total, number, each)
		}
	}
}

// An upload whose completion was answered by a lost response, so that a later attempt finds no upload, is complete if
// the object is there.
func TestLostCompletion(t *testing.T) {
	sum := strings.Repeat("a", 64)
	for stored, complete := range map[string]bool{sum: true, strings.Repeat("b", 64): false, "": false} {
		s := &store{}
		s.fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			q := r.URL.Query()
			switch {
			case r.Method == http.MethodPost && q.Has("uploads"):
				_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>key</Key><UploadId>id</UploadId></InitiateMultipartUploadResult>`)
			case r.Method == http.MethodPut:
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("ETag", `"part"`)
			case r.Method == http.MethodGet && q.Has("uploads"):
				_, _ = io.WriteString(w, `<ListMultipartUploadsResult/>`)
			case r.Method == http.MethodHead:
				w.Header().Set("ETag", `"whole"`)
				w.Header().Set("Last-Modified", time.Unix(1000, 0).UTC().Format(http.TimeFormat))
				w.Header().Set("X-Amz-Meta-Sha256", stored)
				w.Header().Set("Content-Length", "7")
			default:
				status(w, http.StatusNotFound, "NoSuchUpload")
			}
			return true
		}
		_, settings := s.at(t, s3Scheme)
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := settings.publish(t.Context(),
			[]Upload{{Path: path, URL: "s3://bucket/key", SHA256: sum}}); (err == nil) != complete {
			t.Errorf("an object with digest %q: %v", stored, err)
		}
	}
}
