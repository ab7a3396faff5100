package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/internal/retry"
	"github.com/mcompress/mcompress/registry"
)

// pushed returns a server with an artifact.
func pushed(t *testing.T, s *server, a *registry.Artifact) *registry.Stored {
	t.Helper()
	ref := s.ref(t, "models/m:1")
	if _, err := registry.Push(t.Context(), ref, a, registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	l, err := registry.List(t.Context(), ref, registrytest.Quick)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each request is refused once with a status that a later one may not have.
func TestOCIRetries(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := withReferrers(t)
			seen := map[string]int{}
			s.set(func(w http.ResponseWriter, r *http.Request) bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				key := r.Method + r.URL.Path
				if r.Method == http.MethodPatch || r.Method == http.MethodPut && strings.Contains(r.URL.Path, "uploads") {
					key = r.Method // locations are random
				}
				if seen[key]++; seen[key] > 1 {
					return false
				}
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(status)
				return true
			}, nil)
			l := pushed(t, s, registrytest.Complete(t))
			dir := t.TempDir()
			if _, err := l.Pull(t.Context(), dir, registrytest.Quick); err != nil {
				t.Fatal(err)
			}
			registrytest.Same(t, dir, l.Files)
		})
	}
}

// A registry that stays unavailable is an error after a number of attempts.
func TestOCIGivesUp(t *testing.T) {
	s := withReferrers(t)
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	}, nil)
	_, err := registry.Push(t.Context(), s.ref(t, "models/m:1"), registrytest.Fixture(t, "mlp"),
		registry.Options{PlainHTTP: true, Backoff: time.Millisecond, Parallel: 1})
	if !registrytest.IsA[*registry.TransferError](err) || !strings.Contains(err.Error(), "status 502") ||
		s.count("PATCH") != retry.Attempts {
		t.Errorf("%v after %d attempts", err, s.count("PATCH"))
	}
}

// A connection that breaks again and again is an error without the location of the upload, which may have a secret.
func TestOCIBrokenConnections(t *testing.T) {
	s := withReferrers(t)
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			panic(http.ErrAbortHandler)
		}
		return false
	}, nil)
	ref := s.ref(t, "models/m:1")
	_, err := registry.Push(t.Context(), ref, registrytest.Fixture(t, "mlp"), registrytest.Quick)
	if !registrytest.IsA[*registry.TransferError](err) ||
		!strings.HasPrefix(err.Error(), ref.String()+": connection to "+s.host+": ") ||
		strings.Contains(err.Error(), "uploads") {
		t.Errorf("got %v", err)
	}
}

// The connection of every upload breaks once after half of the file.
func TestOCIUploadAfterALostConnection(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a := registrytest.Fixture(t, "mlp")
		var broken atomic.Bool
		s.set(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPatch && r.ContentLength > 1000 && broken.CompareAndSwap(false, true) {
				_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
				panic(http.ErrAbortHandler)
			}
			return false
		}, nil)
		var last int64
		o := registrytest.Quick
		o.Progress = func(done, _ int64) { last = done }
		p, err := registry.Push(t.Context(), s.ref(t, "models/m:1"), a, o)
		if err != nil || !broken.Load() {
			t.Fatal(err)
		}
		if last != p.Size {
			t.Errorf("progress ends at %d of %d bytes", last, p.Size)
		}
	})
}

// A registry that has a part of an upload gets the rest of it.
func TestOCIUploadResumes(t *testing.T) {
	s := withReferrers(t)
	a := registrytest.Fixture(t, "mlp")
	model, _ := a.Model()
	const first = 100_000
	var ranges []string
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPatch && r.ContentLength == model.Size:
			part, err := io.ReadAll(io.LimitReader(r.Body, first))
			if err != nil || len(part) != first {
				t.Errorf("%d bytes, %v", len(part), err)
			}
			req, err := http.NewRequest(http.MethodPatch, "http://"+s.host+r.URL.Path, bytes.NewReader(part))
			if err != nil {
				t.Error(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
			} else {
				resp.Body.Close()
			}
			panic(http.ErrAbortHandler)
		// ggcr's registry has no status of uploads
		case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/uploads/"):
			w.Header().Set("Location", r.URL.Path)
			w.Header().Set("Range", fmt.Sprintf("0-%d", first-1))
			w.WriteHeader(http.StatusNoContent)
			return true
		case r.Method == http.MethodPatch && r.Header.Get("Content-Range") != "":
			ranges = append(ranges, r.Header.Get("Content-Range"))
		}
		return false
	}, nil)
	pushed(t, s, a)
	if want := fmt.Sprintf("%d-%d", first, model.Size-1); len(ranges) != 1 || ranges[0] != want {
		t.Errorf("ranges %v, want %s", ranges, want)
	}
}

// A file is not uploaded again because the last response was lost.
func TestOCIUploadWhoseResponseIsLost(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a := registrytest.Fixture(t, "mlp")
		a.Files = a.Files[:1]
		s.set(nil, func(r *http.Response) error {
			if r.Request.Method == http.MethodPut && r.Request.ContentLength == 0 &&
				strings.Contains(r.Request.URL.Path, "/uploads/") {
				panic(http.ErrAbortHandler)
			}
			return nil
		})
		if p, err := registry.Push(t.Context(), s.ref(t, "models/m:1"), a, registrytest.Quick); err != nil ||
			p.Uploaded != p.Size || s.count("PATCH") != 1 {
			t.Errorf("%+v, %v after %v", p, err, s.requests)
		}
	})
}

// A connection that sends nothing is given up.
func TestOCIStalledTransfers(t *testing.T) {
	s := withReferrers(t)
	var stalled atomic.Int64
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		blob := r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:")
		if blob && stalled.Add(1) == 1 {
			<-r.Context().Done()
			return true
		}
		return false
	}, nil)
	l := pushed(t, s, registrytest.Fixture(t, "mlp"))
	o := registrytest.Quick
	o.Stall = 50 * time.Millisecond
	l, err := registry.List(t.Context(), l.Reference, o)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := l.Pull(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	registrytest.Same(t, dir, l.Files)
}

// cut returns a change that ends the body of the blob of f after n bytes, the first times.
func cut(f registry.File, n, times int64) func(*http.Response) error {
	var cuts atomic.Int64 // a client sends requests at the same time
	return func(r *http.Response) error {
		if r.Request.Method == http.MethodGet && strings.HasSuffix(r.Request.URL.Path, f.SHA256) && cuts.Add(1) <= times {
			r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, n), failing{}))
		}
		return nil
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A download continues where the connection broke.
func TestOCIDownloadAfterLostConnections(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		l := pushed(t, s, registrytest.Fixture(t, "mlp"))
		s.set(nil, cut(l.Files[0], 100_000, 3))
		var ends int64
		o := registrytest.Quick
		o.Progress = func(done, _ int64) { ends = done }
		dir := t.TempDir()
		p, err := l.Pull(t.Context(), dir, o)
		if err != nil || p.Downloaded != p.Size || ends != p.Size {
			t.Fatalf("%+v, %v, progress %d", p, err, ends)
		}
		registrytest.Same(t, dir, l.Files)
	})
}

// A registry without ranges sends the file again.
func TestOCIDownloadWithoutRanges(t *testing.T) {
	s := withReferrers(t)
	l := pushed(t, s, registrytest.Fixture(t, "mlp"))
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("Range")
		return false
	}, cut(l.Files[0], 100_000, 2))
	dir := t.TempDir()
	p, err := l.Pull(t.Context(), dir, registrytest.Quick)
	if err != nil || p.Downloaded < p.Size+200_000 {
		t.Fatalf("%+v, %v", p, err)
	}
	registrytest.Same(t, dir, l.Files)
}

// A pull that is interrupted leaves no file, and the next one downloads the rest only.
func TestOCIInterruptedPullResumes(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		l := pushed(t, s, registrytest.Fixture(t, "mlp"))
		dir := filepath.Join(t.TempDir(), "models")
		ctx, cancel := context.WithCancel(t.Context())
		o := registrytest.Quick
		o.Parallel = 1
		o.Progress = func(done, _ int64) {
			if done > 200_000 {
				cancel()
			}
		}
		if _, err := l.Pull(ctx, dir, o); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if got := registrytest.Visible(t, dir); got != nil {
			t.Fatalf("left: %v", got)
		}
		p, err := l.Pull(t.Context(), dir, registrytest.Quick)
		if err != nil || p.Downloaded > p.Size-200_000 || p.Downloaded == 0 {
			t.Fatalf("%+v, %v", p, err)
		}
		registrytest.Same(t, dir, l.Files)
	})
}

// A pull that is interrupted while it reads the part of an earlier one is no success with that part.
func TestOCIPullInterruptedInAPart(t *testing.T) {
	s := withReferrers(t)
	a := registrytest.Fixture(t, "mlp")
	l := pushed(t, s, a)
	model, _ := a.Model()
	l.Files = l.Files[:1]
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".mcompress-resume-"+l.Files[0].Key()),
		[]byte(registrytest.Read(t, model.Path)[:400_000]), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := registrytest.Quick
	o.Progress = func(int64, int64) { cancel() }
	if _, err := l.Pull(ctx, dir, o); !errors.Is(err, context.Canceled) || registrytest.Visible(t, dir) != nil {
		t.Fatalf("left: %v, %v", registrytest.Visible(t, dir), err)
	}
	if p, err := l.Pull(t.Context(), dir, registrytest.Quick); err != nil || p.Downloaded != p.Size-400_000 {
		t.Fatalf("%+v, %v", p, err)
	}
	registrytest.Same(t, dir, l.Files)
}

// Parts of an earlier pull are verified: a wrong one is downloaded again.
func TestOCIWrongPartIsDropped(t *testing.T) {
	s := withReferrers(t)
	l := pushed(t, s, registrytest.Fixture(t, "mlp"))
	for name, content := range map[string]string{"complete": strings.Repeat("x", int(l.Files[0].Size)),
		"longer": strings.Repeat("x", int(l.Files[0].Size)+1), "shorter": "wrong"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ".mcompress-resume-"+l.Files[0].Key()), []byte(content),
			0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Pull(t.Context(), dir, registrytest.Quick); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		registrytest.Same(t, dir, l.Files)
	}
}

// HTTPS is not left by redirects, certificates are verified unless that is switched off, and plain HTTP is refused for
// other hosts.
func TestOCITransportSecurity(t *testing.T) {
	plain := withReferrers(t)
	tls := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+plain.host+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	ref := registrytest.Parse(t, "oci://"+strings.TrimPrefix(tls.URL, "https://")+"/models/m:1")
	secure, insecure := registrytest.Quick, registrytest.Quick
	secure.PlainHTTP, insecure.PlainHTTP, insecure.Insecure = false, false, true
	for _, c := range []struct {
		ref  registry.Reference
		o    registry.Options
		want string
	}{
		{ref, secure, "is not trusted"},
		{ref, insecure, "redirect from HTTPS to HTTP"},
		{plain.ref(t, "models/m:1"), secure, "does not use TLS; use --plain-http"},
		{registrytest.Parse(t, "oci://registry.example.com/m:1"), registrytest.Quick, "loopback addresses only"},
		{registrytest.Parse(t, "oci://127.0.0.1:1/m:1"), registrytest.Quick, "cannot connect to 127.0.0.1:1"},
	} {
		_, err := registry.List(t.Context(), c.ref, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if n := len(plain.requests); n > 1 {
		t.Errorf("requests by HTTP: %v", plain.requests)
	}
}

// Neither the file nor the credentials are sent to another host.
func TestOCIUploadStaysOnTheHost(t *testing.T) {
	s, other := withReferrers(t), withReferrers(t)
	s.set(nil, func(r *http.Response) error {
		if r.Request.Method == http.MethodPost {
			r.Header.Set("Location", "http://localhost"+strings.TrimPrefix(other.host, "127.0.0.1")+r.Header.Get("Location"))
		}
		return nil
	})
	_, err := registry.Push(t.Context(), s.ref(t, "models/m:1"), registrytest.Fixture(t, "mlp"), registrytest.Quick)
	if !registrytest.IsA[*registry.TransferError](err) ||
		!strings.Contains(err.Error(), "redirects the upload to another host") || len(other.requests) > 0 {
		t.Errorf("got %v, and there %v", err, other.requests)
	}
}
