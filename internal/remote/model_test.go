package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/retry"
	"github.com/mcompress/mcompress/ir"
)

// A web serves the fixtures below /m/, with an ETag of each.
func web(t *testing.T, etag func(name string) string) (string, *atomic.Int64) {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		name := filepath.Base(r.URL.Path)
		content, err := os.ReadFile(filepath.Join("..", "..", "fixtures", name))
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if tag := etag(name); tag != "" {
			w.Header().Set("ETag", tag)
		}
		http.ServeContent(w, r, "", time.Unix(1000, 0), bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/m/", &requests
}

func strong(name string) string { return `"` + name + `"` }

// A model at a URL is read with the data files next to it, and is that of the disk; its tag changes with any of its
// files.
func TestOpenModel(t *testing.T) {
	tags := map[string]string{}
	base, _ := web(t, func(name string) string { return strong(name + tags[name]) })
	for _, name := range []string{"mlp.onnx", "external.onnx"} {
		local, err := OpenModel(t.Context(), filepath.Join("..", "..", "fixtures", name))
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close()
		at, err := OpenModel(t.Context(), base+name+"?signature=secret")
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		want, got := local.Model.Graph.Consts(), at.Model.Graph.Consts()
		if len(want) == 0 || len(got) != len(want) {
			t.Fatalf("%s: %d constants, want %d", name, len(got), len(want))
		}
		for i := range want {
			a, err := (&ir.Eval{}).ReadAll(t.Context(), want[i].Const)
			b, err2 := (&ir.Eval{}).ReadAll(t.Context(), got[i].Const)
			if err != nil || err2 != nil || !bytes.Equal(a, b) {
				t.Errorf("%s: %s differs: %v, %v", name, want[i].Name, err, err2)
			}
		}
	}
	tag := func(name string) string {
		t.Helper()
		s, err := ModelTag(t.Context(), base+name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := tag("external.onnx")
	if first == "" || tag("external.onnx") != first || tag("mlp.onnx") == first {
		t.Errorf("tag %q", first)
	}
	for _, name := range []string{"external.onnx", "external_a.bin", "external_b.bin"} {
		tags[name] = "2"
		if tag("external.onnx") == first {
			t.Errorf("another %s has the same tag", name)
		}
		delete(tags, name)
	}
	for _, other := range []string{"", `W/"weak"`} {
		base, _ := web(t, func(name string) string {
			if name == "external_b.bin" {
				return other
			}
			return strong(name)
		})
		if s, err := ModelTag(t.Context(), base+"external.onnx"); err != nil || s != "" {
			t.Errorf("a file with the ETag %q: %q, %v", other, s, err)
		}
	}
	_, open := OpenModel(t.Context(), base+"none.onnx")
	_, tagged := ModelTag(t.Context(), base+"none.onnx")
	for _, err := range []error{open, tagged} {
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), "none.onnx") != 1 {
			t.Errorf("a model that is not there: %v", err)
		}
	}
	_, open = OpenModel(t.Context(), base+"digits_test.npz")
	_, local := OpenModel(t.Context(), filepath.Join("..", "..", "fixtures", "digits_test.npz"))
	_, invalid := OpenModel(t.Context(), "s3://")
	_, untagged := ModelTag(t.Context(), "s3://")
	for _, err := range []error{open, local, invalid, untagged} {
		if err == nil {
			t.Error("what is no model is opened")
		}
	}
	f := &folder{ctx: t.Context(), settings: newSettings(time.Millisecond), buffers: &buffers{}, opened: []*File{nil}}
	for _, name := range []string{".", "../x", "/x"} {
		if _, err := f.Open(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Files are read whole up to a limit, which they may have, from a disk and from a URL alike.
func TestReadFile(t *testing.T) {
	base, requests := web(t, strong)
	folder := filepath.Join("..", "..", "fixtures")
	want, err := os.ReadFile(filepath.Join(folder, "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(want))
	for _, from := range []string{base, folder + "/"} {
		for limit, allowed := range map[int64]bool{size - 1: false, size: true, size + 1: true} {
			got, err := ReadFile(t.Context(), from+"mlp.onnx", limit)
			if (err == nil) != allowed || allowed && !bytes.Equal(got, want) ||
				!allowed && !strings.Contains(err.Error(), fmt.Sprintf("%d bytes, more than %d", size, limit)) {
				t.Errorf("%s with a limit of %d: %d bytes, %v", from, limit, len(got), err)
			}
		}
		if _, err := ReadFile(t.Context(), from+"none", 1<<20); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%snone: %v", from, err)
		}
		r, n, err := OpenFile(t.Context(), from+"mlp.onnx")
		if err != nil || n != size {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := ReadFile(t.Context(), folder, 1<<20); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	before := requests.Load()
	f, err := Open(t.Context(), base+"mlp.onnx?x=y")
	if err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil || st.Name() != "mlp.onnx" || st.Size() != size || st.Mode() != 0o444 || st.IsDir() || st.Sys() != nil ||
		!st.ModTime().IsZero() {
		t.Errorf("%+v, %v", st, err)
	}
	if tag := f.Tag(); !strings.HasPrefix(tag, `"mlp.onnx" `) || !strings.Contains(tag, "1970") ||
		f.Path() != base+"mlp.onnx" {
		t.Errorf("tag %s of %s", tag, f.Path())
	}
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	if n := requests.Load() - before; n != 1 {
		t.Errorf("%d requests", n)
	}
}

// The range of a response is exactly as its headers state, and other headers are none.
func TestContentRanges(t *testing.T) {
	for header, want := range map[string]string{
		"bytes 0-9/10": "0 10 10", "bytes 5-5/10": "5 6 10", "bytes */0": "0 0 0", "bytes */10": "error", "": "error",
		"bytes 1-2": "error", "items 0-9/10": "error",
		"bytes 0-99999999999999999999/10": "error", "bytes 0-9/99999999999999999999": "error", "bytes 0-9/*": "error",
		"bytes 0-9/10 ": "error",
	} {
		start, end, total, err := contentRange(&http.Response{Header: http.Header{"Content-Range": {header}}})
		if got := fmt.Sprint(start, end, total); (err != nil) != (want == "error") || err == nil && got != want ||
			err != nil && !errors.Is(err, errRange) {
			t.Errorf("%q: %s, %v", header, got, err)
		}
	}
	for length, want := range map[string]bool{"0": true, "1": false, "": false} {
		if _, _, total, err := contentRange(&http.Response{Header: http.Header{"Content-Length": {length}}}); (err == nil) !=
			want || total != 0 {
			t.Errorf("without a range, of length %q: %d, %v", length, total, err)
		}
	}
	for err, want := range map[error]error{io.EOF: io.ErrUnexpectedEOF, io.ErrClosedPipe: io.ErrClosedPipe} {
		if got := cut(err); !errors.Is(got, want) {
			t.Errorf("%v is %v", err, got)
		}
	}
	for tag, want := range map[tag]string{{`"a"`, "x"}: `If-Match "a"`, {`W/"a"`, "x"}: "If-Unmodified-Since x",
		{"", "x"}: "If-Unmodified-Since x", {`W/"a"`, ""}: "", {}: ""} {
		h := http.Header{}
		if tag.set(h); want == "" && len(h) > 0 || want != "" && h.Get(strings.Fields(want)[0]) != strings.Fields(want)[1] {
			t.Errorf("%v: %v", tag, h)
		}
	}
}

// Small reads are answered from the last one, large ones exactly, and reads of payloads by read-ahead that ends with
// them.
func TestRequestsOfReads(t *testing.T) {
	content := randomBytes(6 * firstRead)
	for _, c := range []struct {
		name     string
		reads    [][2]int // offset and size
		requests int64    // besides the first
		received int64
	}{
		{"first bytes", [][2]int{{0, 10}, {firstRead - 10, 10}}, 0, 0},
		{"beyond the first", [][2]int{{firstRead, 10}, {firstRead + 20, 10}, {2*firstRead - 1, 1}}, 2, 0},
		{"small", [][2]int{{3 * firstRead, 10}, {3*firstRead + 20, 10}, {4*firstRead - 1, 1}}, 1, firstRead},
		{"small before it", [][2]int{{3 * firstRead, 10}, {3*firstRead - 1, 1}}, 2, 2 * firstRead},
		{"small after it", [][2]int{{3 * firstRead, 10}, {4*firstRead + 1, 1}}, 2, 2*firstRead - 1 + 1},
		{"small at the end", [][2]int{{6*firstRead - 10, 10}}, 1, 10},
		{"large", [][2]int{{2*firstRead + 7, firstRead}}, 1, firstRead},
		{"larger", [][2]int{{2*firstRead + 7, firstRead + 1}}, 1, firstRead + 1},
	} {
		s := &store{content: content}
		url, settings := s.at(t, httpScheme)
		f, err := settings.opened(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		requests, received := f.requests.Load(), f.received.Load()
		for _, r := range c.reads {
			got := make([]byte, r[1])
			if n, err := f.ReadAt(got, int64(r[0])); n != r[1] || err != nil || !bytes.Equal(got, content[r[0]:r[0]+r[1]]) {
				t.Errorf("%s: %d bytes at %d: %d, %v", c.name, r[1], r[0], n, err)
			}
		}
		if n := f.requests.Load() - requests; n > c.requests || n == 0 && c.requests > 0 {
			t.Errorf("%s: %d requests, at most %d are expected", c.name, n, c.requests)
		}
		if n := f.received.Load() - received; c.received > 0 && n != c.received {
			t.Errorf("%s: %d bytes, want %d", c.name, n, c.received)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	f := &File{size: 100}
	f.Plan([][2]int64{{10, 20}, {30, 5}, {90, 50}})
	for off, want := range map[int64]int64{0: 10, 9: 10, 10: 30, 29: 30, 30: 35, 35: 90, 90: 100, 99: 100} {
		if got := f.bound(off); got != want {
			t.Errorf("from %d on, up to %d", off, got)
		}
	}
	for off, want := range map[int64]bool{10: true, 30: true, 90: true, 11: false, 0: true} { // no read has ended but at 0
		if got := f.sequential(off); got != want {
			t.Errorf("a read at %d is sequential: %t", off, got)
		}
	}
	for i := range int64(20) {
		f.ended(1000 + i)
		f.ended(1000 + i) // the same one counts once
	}
	for i := range int64(20) {
		if got := f.sequential(1000 + i); got != (i >= 4) {
			t.Errorf("a read at the end of the %dth one is sequential: %t", i, got)
		}
	}
}

// The buffers of read-ahead are those of the process: a file whose reader stopped loses its segment after a number of
// reads of others, and not before.
func TestStaleSegments(t *testing.T) {
	b := &buffers{allocated: bufferCount}
	idle := &segmentOf{file: &File{}, buffer: make([]byte, 1), last: 0}
	busy := &segmentOf{file: &File{}, buffer: make([]byte, 2), readers: 1}
	b.segments = []*segmentOf{busy, idle}
	b.readCount = stale
	if got := b.takeBuffer(); got != nil {
		t.Errorf("a buffer is taken after %d reads", b.readCount)
	}
	b.readCount++
	if got := b.takeBuffer(); len(got) != 1 || len(b.segments) != 1 || b.segments[0] != busy {
		t.Errorf("took %d bytes, %d segments are left", len(got), len(b.segments))
	}
	if got := b.takeBuffer(); got != nil {
		t.Error("a buffer with a reader is taken")
	}
	busy.readers = 0
	b.drop(busy.file)
	if len(b.segments) != 0 || len(b.takeBuffer()) != 2 || b.takeBuffer() != nil {
		t.Error("the buffer of a closed file is not free once")
	}
	fresh := &buffers{}
	for range bufferCount {
		if len(fresh.takeBuffer()) != segment {
			t.Error("no new buffer")
		}
	}
	if fresh.takeBuffer() != nil {
		t.Errorf("more than %d buffers", bufferCount)
	}
}

// The endpoint of S3 is a server by TLS, or of this computer, and credentials are needed.
func TestEndpoints(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://s3.example": "", "http://127.0.0.1:1": "", "http://s3.example": "http:// is for loopback addresses only",
		"ftp://s3.example": "is not the URL of a server", "s3.example": "is not the URL of a server",
		"https://%zz": "is not the URL of a server",
	} {
		credentialsOf(t, endpoint)
		s := newSettings(time.Millisecond)
		c, err := s.client(t.Context(), "s3://bucket/key")
		if (err == nil) != (want == "") || err != nil && (!isPath(err) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", endpoint, err)
		}
		if again, err := s.client(t.Context(), "s3://bucket/other"); err == nil && again != c {
			t.Error("another client for the same environment")
		}
		if err == nil {
			t.Setenv("AWS_ACCESS_KEY_ID", "other")
			if again, err := s.client(t.Context(), "s3://bucket/key"); err != nil || again == c {
				t.Errorf("the client of other credentials: %v", err)
			}
		}
	}
	credentialsOf(t, "https://ignored.example")
	t.Setenv("AWS_ENDPOINT_URL_S3", "https://first.example")
	if c, err := newSettings(time.Millisecond).client(t.Context(), "s3://b/k"); err != nil ||
		c.endpoint.Host != "first.example" {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	if c, err := newSettings(time.Millisecond).client(t.Context(), "s3://b/k"); err != nil ||
		!strings.HasSuffix(c.endpoint.Host, "amazonaws.com") {
		t.Errorf("%v", err)
	}
}

func isPath(err error) bool {
	var e *PathError
	return errors.As(err, &e) && e.Unwrap() != nil
}

// Steps are repeated while their errors may pass.
func TestAttempts(t *testing.T) {
	s := newSettings(time.Nanosecond)
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 1},
		{&statusError{status: http.StatusTooManyRequests}, retry.Attempts},
		{&statusError{status: http.StatusServiceUnavailable, code: "SlowDown"}, retry.Attempts},
		{&statusError{status: http.StatusNotImplemented}, 1},
		{&statusError{status: http.StatusBadRequest}, 1},
		{&statusError{status: http.StatusBadRequest, code: "RequestTimeout"}, retry.Attempts},
		{&statusError{status: http.StatusConflict, code: "ConditionalRequestConflict"}, retry.Attempts},
		{&statusError{status: http.StatusConflict}, 1},
		{refusedf("no"), 1}, {ErrChanged, 1}, {context.Canceled, 1},
		{context.DeadlineExceeded, retry.Attempts}, {io.ErrUnexpectedEOF, retry.Attempts},
	} {
		n := 0
		err := s.retry(t.Context(), func() error { n++; return c.err })
		counted := err != nil && strings.Contains(err.Error(), fmt.Sprintf("%d attempts failed", retry.Attempts))
		if n != c.want || !errors.Is(err, c.err) || (n == retry.Attempts) != counted {
			t.Errorf("%v: %d attempts, %v", c.err, n, err)
		}
	}
}

// Errors say what the server said, and what to do.
func TestTextsOfErrors(t *testing.T) {
	for _, c := range []struct {
		e    *statusError
		want string
	}{
		{&statusError{status: 404}, "status 404 Not Found"},
		{&statusError{status: 404, code: "NoSuchKey", message: "none"}, "status 404 NoSuchKey: none"},
		{&statusError{status: 999}, "status 999"},
		{&statusError{status: 403},
			"status 403 Forbidden (access is denied: check the credentials, or whether the signed URL has expired)"},
		{&statusError{status: 401},
			"status 401 Unauthorized (access is denied: check the credentials, or whether the signed URL has expired)"},
		{&statusError{status: 403, code: "RequestExpired"},
			"status 403 RequestExpired (the credentials have expired: renew them)"},
		{&statusError{status: 400, code: "ExpiredTokenException"},
			"status 400 ExpiredTokenException (the credentials have expired: renew them)"},
		{&statusError{status: 400, code: "ExpiredToken"},
			"status 400 ExpiredToken (the credentials have expired: renew them)"},
	} {
		if got := c.e.Error(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		if got := errors.Is(c.e, fs.ErrNotExist); got != (c.e.status == 404) || errors.Is(c.e, ErrChanged) ||
			errors.Is(c.e, io.EOF) {
			t.Errorf("%v: does not exist %t", c.e, got)
		}
	}
	if !errors.Is(&statusError{status: http.StatusPreconditionFailed}, ErrChanged) {
		t.Error("a failed precondition is no change")
	}
	if err := failed("s3://b/k", fmt.Errorf("attempt: %w",
		&statusError{status: http.StatusPreconditionFailed})); err.Error() != "s3://b/k: "+ErrChanged.Error() {
		t.Errorf("got %v", err)
	}
	body := "<Error><Code>C</Code><Message>" + strings.Repeat("m", maxErrorBody) + "</Message></Error>"
	for text, want := range map[string]string{"<Error><Code>C</Code><Message>m</Message></Error>": "status 400 C: m",
		"text": "status 400 Bad Request", body: "status 400 Bad Request"} {
		if got := responseError(&http.Response{StatusCode: 400,
			Body: io.NopCloser(strings.NewReader(text))}).Error(); got != want {
			t.Errorf("%.60s: %s", text, got)
		}
	}
}
