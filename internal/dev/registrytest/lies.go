package registrytest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
	"github.com/mcompress/mcompress/internal/retry"
	"github.com/mcompress/mcompress/registry"
)

// Secret is the password of the registry that lies, which no other host may get.
const Secret = "c2VjcmV0LW9mLXRlc3Rz"

// A Liar is a registry that answers as a recording, but for one lie.
type Liar struct {
	Host string

	recording *Recording
	other     string // the address of another host
	lies      []lie

	mu       sync.Mutex
	current  func(w http.ResponseWriter, r *http.Request)
	requests int
	leaked   []string // to the other host
}

// A lie is another way to answer requests, of which those of one address are the lie.
type lie struct {
	name  string
	serve func(w http.ResponseWriter, r *http.Request)
}

// NewLiar returns a server for the lies about the answers of a recording whose addresses contain a text: each field, the
// header, the status, the length and the speed. At most fields lies are about the fields of one answer.
func NewLiar(t testing.TB, r *Recording, about string, fields int) *Liar {
	t.Helper()
	l := &Liar{recording: r}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var head bytes.Buffer
		_ = r.Write(&head)
		l.mu.Lock()
		defer l.mu.Unlock()
		if strings.Contains(head.String(), Secret) {
			l.leaked = append(l.leaked, r.URL.Path)
		}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(other.Close)
	// Another name of the loopback interface: to a client it is another host.
	l.other = strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.requests++
		serve := l.current
		l.mu.Unlock()
		serve(w, r)
	}))
	t.Cleanup(s.Close)
	l.Host = strings.TrimPrefix(s.URL, "http://")
	for _, key := range r.keys() {
		if !strings.Contains(key, about) {
			continue
		}
		l.addFields(key, fields)
		l.addAnswers(key)
	}
	return l
}

// addFields adds the lies about the fields of an answer in JSON, of which digests that other answers have are right.
func (l *Liar) addFields(key string, limit int) {
	a := l.recording.answers[key]
	if !isObject(a.body) {
		return
	}
	for _, c := range hostile.Some(hostile.JSON(a.body), limit) {
		l.lies = append(l.lies, lie{key + ": " + c.Name, l.recording.with(key, c.Text).serve})
	}
}

func isObject(text string) bool { return strings.HasPrefix(text, "{") && json.Valid([]byte(text)) }

// addAnswers adds the lies about a whole answer.
func (l *Liar) addAnswers(key string) {
	for name, answer := range l.answers(key) {
		l.lies = append(l.lies, lie{key + ": " + name, func(w http.ResponseWriter, r *http.Request) {
			if requestKey(r) != key {
				l.recording.serve(w, r)
				return
			}
			answer(w, r)
		}})
	}
	slices.SortFunc(l.lies, func(a, b lie) int { return strings.Compare(a.name, b.name) })
}

// endless is the number of bytes of an answer without an end: more than a client may read into memory, or store.
const endless = 256 << 20

// expanding is compressed content that is a thousand times as large.
var expanding = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 64 {
		_, _ = z.Write(bytes.Repeat([]byte(" "), 1<<20))
	}
	_ = z.Close()
	return b.Bytes()
})

func (l *Liar) answers(key string) map[string]func(w http.ResponseWriter, r *http.Request) {
	honest := l.recording.answers[key]
	list := map[string]func(w http.ResponseWriter, r *http.Request){
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			for text := strings.Repeat(" ", 1<<16); ; {
				if _, err := io.WriteString(w, text); err != nil {
					return
				}
			}
		},
		"endless text": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"files":["`)
			for n := 0; n < endless; n += 1 << 16 {
				if _, err := io.WriteString(w, strings.Repeat("a", 1<<16)); err != nil {
					return
				}
			}
		},
		"expands": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(expanding())
		},
		"broken": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(honest.body)))
			_, _ = io.WriteString(w, honest.body[:len(honest.body)/2])
			panic(http.ErrAbortHandler)
		},
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"stalls":    func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"stalls within": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(honest.body)+1))
			_, _ = io.WriteString(w, honest.body[:len(honest.body)/2])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		},
		"refused with a long text": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"errors":[{"code":"DENIED","message":"`+strings.Repeat("a\\n\\u001b", 1<<18)+`"}]}`)
		},
	}
	for _, status := range []int{204, 206, 302, 304, 404, 416, 500, 999} {
		list[fmt.Sprint("status ", status)] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for name, to := range map[string]string{
		"another host": l.other + "/elsewhere", "a file": "file:///etc/passwd", "itself": "", "another scheme": "gopher://localhost/x",
		"a password": strings.Replace(l.other, "http://", "http://u:p@", 1), "no address": "http://[", "controls": "http://localhost:1/\x1b]0;a\a",
	} {
		list["redirected to "+name] = func(w http.ResponseWriter, r *http.Request) {
			if to == "" {
				w.Header().Set("Location", r.URL.RequestURI())
			} else {
				w.Header().Set("Location", to)
			}
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	}
	for name, values := range map[string][]string{
		"Content-Length": {"0", "1", "99999999999"}, "Content-Range": {"", "bytes 0-0/1", "bytes 5-1/*"},
		"Content-Type":          {"", "x", "application/vnd.oci.image.index.v1+json", strings.Repeat("a", 1000)},
		"Docker-Content-Digest": {"", "x", "sha256:" + strings.Repeat("0", 64), "sha512:" + strings.Repeat("0", 128), "sha256:../../../x"},
		"Link":                  {`<` + strings.TrimPrefix(key, "GET ") + `>; rel="next"`, `<http://elsewhere.invalid/>; rel="next"`, "<", "<file:///etc/passwd>; rel=\"next\""},
		"Content-Encoding":      {"gzip", "identity"}, "X-Long": {strings.Repeat("a", 2<<20)},
		"Www-Authenticate": {"Basic", "Bearer", "Bearer realm=", strings.Repeat("Bearer ", 10000)},
	} {
		for i, value := range values {
			list[fmt.Sprintf("header %s %d", name, i)] = func(w http.ResponseWriter, r *http.Request) {
				for name, values := range honest.header {
					w.Header()[name] = values
				}
				w.Header().Set(name, value)
				status := honest.status
				if name == "Www-Authenticate" {
					status = http.StatusUnauthorized
				}
				w.WriteHeader(status)
				if r.Method != http.MethodHead {
					_, _ = io.WriteString(w, honest.body)
				}
			}
		}
	}
	return list
}

// transfers is the bound of a list and a pull: the largest answer that is read into memory has 16 MiB, for which a growing
// buffer takes a multiple, in each attempt.
var transfers = oracle.Bound{Memory: retry.Attempts * 100 << 20, Time: 20 * time.Second}

// maxRequests is the number of requests of a list and a pull at most: a registry may list a hundred files of a model.
const maxRequests = 400

// Check lists and pulls ref, at the host of the liar, for each lie.
func (l *Liar) Check(t *testing.T, ref registry.Reference) {
	t.Helper()
	refused := 0
	for _, c := range l.lies {
		if l.try(t, ref, c) != nil {
			refused++
		}
	}
	// Lies that a client does not read are harmless; a client that reads none is not tested.
	if refused < len(l.lies)/3 {
		t.Errorf("%d of %d lies are refused", refused, len(l.lies))
	}
}

// try lists and pulls ref for a lie: what is pulled is as listed, or there is an error of the registry or of its content,
// and no file; nothing is outside of the folder, and no other host learns the secret.
func (l *Liar) try(t *testing.T, ref registry.Reference, c lie) error {
	t.Helper()
	l.mu.Lock()
	l.current, l.requests, l.leaked = c.serve, 0, nil
	l.mu.Unlock()
	o := Quick
	o.Stall = 50 * time.Millisecond
	around := t.TempDir()
	dir := filepath.Join(around, "models")
	var s *registry.Stored
	var err error
	transfers.Check(t, 0, func() {
		if s, err = registry.List(t.Context(), ref, o); err == nil {
			_, err = s.Pull(t.Context(), dir, o)
		}
	})
	l.mu.Lock()
	requests, leaked := l.requests, l.leaked
	l.mu.Unlock()
	switch {
	case err != nil && !IsA[*registry.ContentError](err) && !IsA[*registry.TransferError](err):
		t.Errorf("%.200s: %T %.500v", c.name, err, err)
	case err != nil && len(Visible(t, dir)) > 0:
		t.Errorf("%.200s: left %q, %.500v", c.name, Visible(t, dir), err)
	case err == nil:
		for _, f := range s.Files {
			if Sum([]byte(Read(t, filepath.Join(dir, filepath.FromSlash(f.Name))))) != f.SHA256 {
				t.Errorf("%.200s: %s has another digest than is listed", c.name, f.Name)
			}
		}
	}
	if requests > maxRequests || len(leaked) > 0 {
		t.Errorf("%.200s: %d requests, and with the secret elsewhere %q", c.name, requests, leaked)
	}
	if entries, err := os.ReadDir(around); err != nil || len(entries) > 1 {
		t.Errorf("%.200s: beside the folder is %v, %v", c.name, entries, err)
	}
	return err
}

// Fuzz adds a target in which an answer of the recording is any text; digests of it that other answers have are right.
func (l *Liar) Fuzz(f *testing.F, ref registry.Reference) {
	keys := l.recording.keys()
	for i, key := range keys {
		if a := l.recording.answers[key]; isObject(a.body) {
			f.Add(uint8(i), []byte(a.body))
		}
	}
	f.Fuzz(func(t *testing.T, at uint8, body []byte) {
		key := keys[int(at)%len(keys)]
		_ = l.try(t, ref, lie{key, l.recording.with(key, string(body)).serve})
	})
}
