package mlflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/retry"
	"github.com/mcompress/mcompress/internal/untrusted"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/registry/internal/transfer"
)

// maxAnswer limits the responses of the REST API in bytes, which are read into memory.
const maxAnswer = 16 << 20

// The error codes of MLflow.
const (
	doesNotExist  = "RESOURCE_DOES_NOT_EXIST"
	alreadyExists = "RESOURCE_ALREADY_EXISTS"
)

// fields are the parameters of a request.
type fields map[string]any

// A responseError is the error of a response.
type responseError struct {
	Status  int    `json:"-"`
	Code    string `json:"error_code"`
	Message string `json:"message"`
}

// Error is the message of the server, in one line.
func (e *responseError) Error() string {
	return strings.Join(strings.Fields(cmp.Or(e.Message, e.Code, fmt.Sprintf("status %d", e.Status))), " ")
}

func isCode(err error, code string) bool {
	var e *responseError
	return errors.As(err, &e) && e.Code == code
}

func (m *client) refused(err error) error {
	return &registry.TransferError{Reference: m.ref, Err: err, Refused: true}
}

// repeat repeats a step after errors that may pass. A step within another one is done once.
func (m *client) repeat(ctx context.Context, step func(context.Context) error) error {
	if transfer.IsInStep(ctx) {
		return step(ctx)
	}
	ctx = transfer.InStep(ctx)
	return retry.Do(ctx, m.o.Backoff, registry.IsTransient, func() error { return step(ctx) })
}

// call sends a request of the REST API and decodes the response into out, which may be nil. It is repeated where that
// may help, and must thus be one that can be.
func (m *client) call(ctx context.Context, method, path string, in fields, out any) error {
	return m.repeat(ctx, func(ctx context.Context) error { return m.send(ctx, method, "mlflow/"+path, in, out) })
}

// create sends a request that makes something new, once: a repetition after a lost response would make a second one.
func (m *client) create(ctx context.Context, path string, in fields, out any) error {
	return m.send(transfer.InStep(ctx), http.MethodPost, "mlflow/"+path, in, out)
}

// send sends a request and decodes the response.
func (m *client) send(ctx context.Context, method, path string, in fields, out any) error {
	req, err := m.request(ctx, method, path, in)
	if err != nil {
		return err
	}
	return m.answer(req, out)
}

func (m *client) request(ctx context.Context, method, path string, in fields) (*http.Request, error) {
	address := m.base + "/api/2.0/" + path
	if method == http.MethodGet {
		query := url.Values{}
		for k, v := range in {
			query.Set(k, fmt.Sprint(v))
		}
		req, err := http.NewRequestWithContext(ctx, method, address+"?"+query.Encode(), nil)
		return m.signed(req), err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err == nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return m.signed(req), err
}

// signed adds the credentials to a request.
func (m *client) signed(req *http.Request) *http.Request {
	if req != nil {
		req.Header.Set("User-Agent", "mcompress")
		if m.auth != "" {
			req.Header.Set("Authorization", m.auth)
		}
	}
	return req
}

// answer sends a request and decodes the response.
func (m *client) answer(req *http.Request, out any) error {
	resp, err := m.http.Do(req)
	if err != nil {
		return m.failed(req.Context(), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return m.status(resp)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return m.failed(req.Context(), err)
	}
	if out == nil {
		out = &struct{}{}
	}
	if err := bounded.JSON(text, out); err != nil {
		return m.refused(
			fmt.Errorf(
				"%s is no MLflow server, or its path is missing before the name of the model: the response is %s",
				m.ref.Host,
				contentType(resp),
			),
		)
	}
	return nil
}

func contentType(resp *http.Response) string {
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return cmp.Or(media, "of no type")
}

// failed is the error of a request without a response.
func (m *client) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, transfer.ErrStalled) {
		return cause
	}
	cause, transient := transfer.Unreached(m.ref.Host, err)
	return &registry.TransferError{Reference: m.ref, Err: cause, Refused: !transient}
}

// status is the error of a response.
func (m *client) status(resp *http.Response) error {
	e := &responseError{Status: resp.StatusCode}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if bounded.JSON(text, e) != nil || e.Message == "" {
		e.Message = http.StatusText(resp.StatusCode)
		if len(text) > 0 && len(text) < 300 && !bytes.ContainsAny(text, "<{") {
			e.Message = string(text)
		}
	}
	if retry.Status(resp.StatusCode) {
		err := fmt.Errorf("the server responds with status %d: %w", resp.StatusCode, e)
		return &registry.TransferError{Reference: m.ref, Err: retry.Delay(err, retry.After(resp))}
	}
	return m.refused(m.explained(e))
}

// explained is an error of the server in words for users.
func (m *client) explained(e *responseError) error {
	switch {
	case e.Status == http.StatusUnauthorized && m.auth == "":
		return fmt.Errorf(
			"%s requires credentials: set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
			m.ref.Host,
		)
	case e.Status == http.StatusUnauthorized:
		return fmt.Errorf(
			"%s refuses the credentials of MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
			m.ref.Host,
		)
	case e.Status == http.StatusForbidden:
		return fmt.Errorf("%s denies access: %w", m.ref.Host, e)
	case e.Status == http.StatusNotFound && e.Code == "":
		return fmt.Errorf(
			"%s is no MLflow server of version 3, or its path is missing before the name of the model: %w",
			m.ref.Host,
			e,
		)
	}
	return fmt.Errorf("the server responds with status %d: %w", e.Status, e)
}

// artifactURL is the address of a file that the server stores (proxied artifacts).
func (m *client) artifactURL(path string) string {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return m.base + "/api/2.0/mlflow-artifacts/artifacts/" + strings.Join(elements, "/")
}

// proxied returns the path on the server of a location of artifacts. Clients store artifacts of other locations
// themselves, with credentials of the store.
func (m *client) proxied(location string) (string, error) {
	at, err := url.Parse(location)
	if err == nil && at.Scheme == "mlflow-artifacts" {
		path := strings.Trim(at.Path, "/")
		// Addresses with .. are those of other services of the host, which would get the credentials.
		if _, err := untrusted.Path("", path); err != nil {
			return "", &registry.ContentError{What: m.ref.String(), Err: err}
		}
		return path, nil
	}
	return "", m.refused(
		fmt.Errorf(
			"the server does not store artifacts: those of the experiment are at %q; start it with --serve-artifacts, and "+
				"name a new experiment by MLFLOW_EXPERIMENT_NAME",
			location,
		),
	)
}

// upload stores a file at a path on the server, and repeats that after errors. MLflow has no uploads that resume.
func (m *client) upload(ctx context.Context, path string, f registry.File, count *transfer.Meter) error {
	return m.repeat(ctx, func(ctx context.Context) error {
		file, err := os.Open(f.Path)
		if err != nil {
			return err
		}
		defer file.Close()
		// Of the size that was declared, should the file grow meanwhile.
		sent := &sentFile{Reader: io.LimitReader(file, f.Size), count: count}
		err = m.put(ctx, path, sent, f.Size)
		sent.end(err == nil)
		return err
	})
}

// uploadText stores a text.
func (m *client) uploadText(ctx context.Context, path, text string) error {
	return m.repeat(ctx, func(ctx context.Context) error {
		return m.put(ctx, path, &sentFile{Reader: strings.NewReader(text)}, int64(len(text)))
	})
}

// put sends a body.
func (m *client) put(ctx context.Context, path string, body *sentFile, size int64) error {
	ctx, body.watch = transfer.NewWatchdog(ctx, m.o.Stall)
	defer body.watch.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, m.artifactURL(path), io.NopCloser(body))
	if err != nil {
		return err
	}
	// A body of length 0 that is not NoBody would be sent in chunks, which not every server accepts.
	if req.ContentLength = size; size == 0 {
		req.Body = http.NoBody
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := m.http.Do(m.signed(req))
	if err != nil {
		return m.failed(ctx, body.watch.Cause(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return m.status(resp)
	}
	return nil
}

// A sentFile is a body that counts its bytes, until its end: a connection may read more of it after the response. The
// watchdog rests when all is sent, as the server may then store gigabytes elsewhere.
type sentFile struct {
	io.Reader
	watch *transfer.Watchdog

	mu    sync.Mutex
	count *transfer.Meter // nil for none, and after the end
	n     int64
}

// Read reads and counts.
func (s *sentFile) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		s.watch.Pause()
	} else {
		s.watch.Reset()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count != nil {
		s.n += int64(n)
		s.count.Add(int64(n))
	}
	return n, err
}

// end ends the count; without success the sent bytes do not count.
func (s *sentFile) end(success bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !success {
		s.count.Add(-s.n)
	}
	s.count = nil
}

// download returns the content at a path from a byte on. A server without ranges sends all of it.
func (m *client) download(ctx context.Context, path string, f registry.File, from int64) (io.ReadCloser, int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.artifactURL(path), nil)
	if err != nil {
		return nil, 0, err
	}
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	resp, err := m.http.Do(m.signed(req))
	if err != nil {
		return nil, 0, m.failed(ctx, err)
	}
	content := resp.Body
	switch {
	// The server ignored the range: the content begins anew, and so does the digest of the caller.
	case resp.StatusCode == http.StatusOK:
		from = 0
	case resp.StatusCode != http.StatusPartialContent || from == 0:
		return nil, 0, errors.Join(m.status(resp), content.Close())
	case !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", from)):
		return nil, 0, errors.Join(
			m.refused(
				fmt.Errorf(
					"%s: the server sent %q instead of the bytes from %d",
					f.Name,
					resp.Header.Get("Content-Range"),
					from,
				),
			),
			content.Close(),
		)
	}
	if n := resp.ContentLength; n >= 0 && f.Size >= 0 && from+n != f.Size {
		return nil, 0, errors.Join(
			&registry.ContentError{What: f.Name, Err: fmt.Errorf("%d bytes, but the manifest lists %d", from+n, f.Size)},
			content.Close(),
		)
	}
	return content, from, nil
}

// stored are the sizes of the files in a folder on the server and below it, by their paths in it.
func (m *client) stored(ctx context.Context, folder string) (map[string]int64, error) {
	sizes := map[string]int64{}
	for todo := []string{""}; len(todo) > 0; todo = todo[1:] {
		var out struct {
			Files []struct {
				Path  string
				IsDir bool        `json:"is_dir"`
				Size  json.Number `json:"file_size"`
			}
		}
		in := fields{"path": strings.TrimSuffix(folder+"/"+todo[0], "/")}
		list := func(ctx context.Context) error {
			return m.send(ctx, http.MethodGet, "mlflow-artifacts/artifacts", in, &out)
		}
		if err := m.repeat(ctx, list); err != nil {
			return nil, err
		}
		for _, f := range out.Files {
			path := todo[0] + f.Path
			// A server that lists folders within folders without end must not be followed.
			if f.IsDir && len(todo) < 100 {
				todo = append(todo, path+"/")
				continue
			}
			sizes[path], _ = f.Size.Int64() // empty files have no size
		}
	}
	return sizes, nil
}
