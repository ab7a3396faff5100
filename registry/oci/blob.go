package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"

	orasregistry "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/retry"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/registry/internal/transfer"
)

// blobURL is the address of blobs: a digest, or uploads/ (OCI distribution specification, section "Endpoints").
func (r *repository) blobURL(rest string) string {
	return r.protocol + "://" + r.Reference.Host() + "/v2/" + r.ref.Name + "/blobs/" + rest
}

// do sends a request. A status that is not among want is an error.
func (r *repository) do(req *http.Request, want ...int) (*http.Response, error) {
	resp, err := r.auth.Do(req)
	if err != nil {
		return nil, err
	}
	for _, status := range want {
		if resp.StatusCode == status {
			return resp, nil
		}
	}
	defer resp.Body.Close()
	return nil, retry.Delay(responseError(resp), retry.After(resp))
}

// responseError is the error of a response: its status, and the errors of its body if it has some.
func responseError(resp *http.Response) *errcode.ErrorResponse {
	e := &errcode.ErrorResponse{Method: resp.Request.Method, URL: resp.Request.URL, StatusCode: resp.StatusCode}
	var body struct{ Errors errcode.Errors }
	if bounded.ReadJSON(resp.Body, 1<<16, &body) == nil {
		e.Errors = body.Errors
	}
	return e
}

// fetch requests a blob from a byte on. A registry without ranges sends all of it.
func (r *repository) fetch(ctx context.Context, f registry.File, from int64) (io.ReadCloser, int64, error) {
	ctx = auth.AppendRepositoryScope(ctx, r.Reference, auth.ActionPull)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.blobURL("sha256:"+f.SHA256), nil)
	if err != nil {
		return nil, 0, err
	}
	want := []int{http.StatusOK}
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, f.Size-1))
		want = append(want, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable)
	}
	resp, err := r.do(req, want...)
	if err != nil {
		return nil, 0, r.failed(err)
	}
	content := resp.Body
	// A registry may refuse ranges instead of ignoring them: the file is sent from its start.
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		if err := content.Close(); err != nil {
			return nil, 0, err
		}
		return r.fetch(ctx, f, 0)
	}
	if resp.StatusCode == http.StatusOK {
		from = 0
	} else if got := resp.Header.Get("Content-Range"); !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", from)) {
		wrong := fmt.Errorf("%s: the registry sent %q instead of the bytes from %d", f.Name, got, from)
		return nil, 0, errors.Join(r.refused(wrong), content.Close())
	}
	if n := resp.ContentLength; n >= 0 && from+n != f.Size {
		return nil, 0, errors.Join(
			&registry.ContentError{What: f.Name, Err: fmt.Errorf("%d bytes, but the registry lists %d", from+n, f.Size)},
			content.Close(),
		)
	}
	return content, from, nil
}

// begin starts the upload of f, or mounts it: then the location is nil. f is nil for an upload that is cancelled.
func (r *repository) begin(ctx context.Context, f *registry.File) (*url.URL, error) {
	var at *url.URL
	for _, from := range append(r.sources(f), "") {
		if at != nil {
			r.cancel(ctx, at)
		}
		address := r.blobURL("uploads/")
		scoped := auth.AppendRepositoryScope(ctx, r.Reference, auth.ActionPull, auth.ActionPush)
		if from != "" {
			address += "?" + url.Values{"mount": {"sha256:" + f.SHA256}, "from": {from}}.Encode()
			scoped = auth.AppendRepositoryScope(
				scoped,
				orasregistry.Reference{Registry: r.ref.Host, Repository: from},
				auth.ActionPull,
			)
		}
		// An empty body that is not nil is not sent again.
		req, err := http.NewRequestWithContext(scoped, http.MethodPost, address, nil)
		if err != nil {
			return nil, err
		}
		resp, err := r.do(req, http.StatusAccepted, http.StatusCreated)
		if err != nil {
			return nil, err
		}
		if err := resp.Body.Close(); err != nil {
			return nil, err
		}
		// Mounted. Any other status is that of an upload that was begun instead, which is cancelled if another
		// repository is tried.
		if resp.StatusCode == http.StatusCreated && from != "" {
			return nil, nil
		}
		if at, err = r.location(resp); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// sources are the repositories that f may be mounted from.
func (r *repository) sources(f *registry.File) []string {
	if f == nil || f.Role != registry.Model && f.Role != registry.Data {
		return nil
	}
	return r.o.MountFrom[:len(r.o.MountFrom):len(r.o.MountFrom)]
}

// location is where an upload continues. It has to be on the same host: the file and the credentials are sent there.
func (r *repository) location(resp *http.Response) (*url.URL, error) {
	at, err := resp.Location()
	if err != nil {
		return nil, r.refused(fmt.Errorf("upload: %w", err))
	}
	requested := resp.Request.URL
	if at.Hostname() != requested.Hostname() || at.Scheme != requested.Scheme {
		return nil, r.refused(fmt.Errorf("the registry redirects the upload to another host, %s", at.Host))
	}
	at.Host = requested.Host // some registries leave out the port
	return at, nil
}

// cancel ends an upload. A registry that does not support that drops it later.
func (r *repository) cancel(ctx context.Context, at *url.URL) {
	if req, err := http.NewRequestWithContext(ctx, http.MethodDelete, at.String(), nil); err == nil {
		if resp, err := r.auth.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
}

// An upload is the upload of one file in one request with PATCH, as Docker's, and in more requests after an
// interruption if the registry still has the first part.
type upload struct {
	*repository
	f     registry.File
	file  *os.File
	meter *transfer.Meter

	at   *url.URL // nil if the upload has to begin anew
	sent int64    // bytes that the registry has
}

// upload uploads a file and returns the number of its bytes; 0 if it was mounted.
func (r *repository) upload(ctx context.Context, f registry.File, m *transfer.Meter) (int64, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	u := &upload{repository: r, f: f, file: file, meter: m}
	ctx = transfer.InStep(ctx)
	for series := retry.NewSeries(r.o.Backoff); ; {
		mounted, err := u.run(ctx)
		if err == nil && mounted {
			m.Add(f.Size)
			return 0, nil
		}
		if err == nil {
			return f.Size, nil
		}
		if !registry.IsTransient(err) || context.Cause(ctx) != nil {
			return 0, err
		}
		if u.resume(ctx) {
			series.Progress()
		}
		if !series.Wait(ctx, err) {
			return 0, err
		}
	}
}

// run uploads the bytes that the registry does not have. It reports whether the file was mounted instead.
func (u *upload) run(ctx context.Context) (mounted bool, err error) {
	if u.at == nil {
		if u.at, err = u.begin(ctx, &u.f); err != nil || u.at == nil {
			return err == nil, u.failed(err)
		}
	}
	if u.sent < u.f.Size {
		if err := u.patch(ctx); err != nil {
			return false, err
		}
	}
	// The registry compares the digest here: a wrong or short body is an error and no blob.
	err = u.failed(u.commit(ctx))
	var lost *registry.TransferError
	if errors.As(err, &lost) && u.hasBlob(ctx) { // the response was lost, or late
		return false, nil
	}
	return false, err
}

// hasBlob reports whether the registry has the file.
func (u *upload) hasBlob(ctx context.Context) bool {
	exists, err := u.Blobs().Exists(ctx, blob(u.f))
	return err == nil && exists
}

// patch sends the rest of the file. It is not repeated by the client: the registry may have a part of it.
func (u *upload) patch(ctx context.Context) error {
	ctx, watch := transfer.NewWatchdog(ctx, u.o.Stall)
	defer watch.Stop()
	sent := &uploadBody{u: u, watch: watch}
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, u.at.String(), sent.restart())
	if err != nil {
		return err
	}
	req.GetBody = func() (io.ReadCloser, error) { return sent.restart(), nil } // after a token expired
	req.ContentLength = u.f.Size - u.sent
	req.Header.Set("Content-Type", "application/octet-stream")
	if u.sent > 0 {
		req.Header.Set("Content-Range", fmt.Sprintf("%d-%d", u.sent, u.f.Size-1))
	}
	resp, err := u.auth.Do(req)
	if err != nil {
		sent.discard()
		return u.failed(watch.Cause(err))
	}
	defer resp.Body.Close()
	// That of Docker's specification.
	if resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent {
		u.sent = u.f.Size
		u.at, err = u.location(resp)
		return err
	}
	sent.discard()
	return u.failed(retry.Delay(responseError(resp), retry.After(resp)))
}

// An uploadBody is the bodies of the requests of one PATCH, of which the last one counts. A transport may read a body
// after the request has failed.
type uploadBody struct {
	u     *upload
	watch *transfer.Watchdog

	mu      sync.Mutex
	counted int64
	current *io.SectionReader
}

// restart returns a body with the rest of the file.
func (b *uploadBody) restart() io.ReadCloser {
	b.discard()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = io.NewSectionReader(b.u.file, b.u.sent, b.u.f.Size-b.u.sent)
	return io.NopCloser(&uploadReader{b, b.current})
}

// discard subtracts the bytes that were counted.
func (b *uploadBody) discard() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.u.meter.Add(-b.counted)
	b.counted, b.current = 0, nil
}

type uploadReader struct {
	b    *uploadBody
	part *io.SectionReader
}

// Read counts the bytes of the last body.
func (r *uploadReader) Read(p []byte) (int, error) {
	n, err := r.part.Read(p)
	r.b.watch.Reset()
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if r.b.current == r.part {
		r.b.counted += int64(n)
		r.b.u.meter.Add(int64(n))
		if r.b.counted == r.part.Size() {
			r.b.watch.Pause() // the response has a timeout of its own
		}
	}
	return n, err
}

// resume requests the number of bytes of an interrupted upload that the registry has (OCI distribution specification,
// section "Pushing a blob in chunks"). It reports whether that is more than before; the upload begins anew if it is not
// known.
func (u *upload) resume(ctx context.Context) bool {
	before, at := u.sent, u.at
	// Until the registry has answered, nothing of the upload is known to be there.
	u.at, u.sent = nil, 0
	if at == nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err == nil {
		var resp *http.Response
		if resp, err = u.do(req, http.StatusNoContent); err == nil {
			defer resp.Body.Close()
			_, last, _ := strings.Cut(resp.Header.Get("Range"), "-")
			end, bad := strconv.ParseInt(last, 10, 64)
			// Distribution sends 0-0 where it has nothing.
			if next, elsewhere := u.location(resp); bad == nil && elsewhere == nil && end > 0 && end < u.f.Size {
				u.at, u.sent = next, end+1
			}
		}
	}
	u.meter.Add(u.sent - before)
	return u.sent > before
}

// commit ends the upload. The registry compares the digest.
func (u *upload) commit(ctx context.Context) error {
	at := *u.at
	query := at.Query()
	query.Set("digest", "sha256:"+u.f.SHA256)
	at.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, at.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := u.do(req, http.StatusCreated)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if d := resp.Header.Get("Docker-Content-Digest"); d != "" && d != "sha256:"+u.f.SHA256 {
		return &registry.ContentError{
			What: u.f.Name,
			Err:  fmt.Errorf("the registry stored %s instead of sha256:%s", d, u.f.SHA256),
		}
	}
	return nil
}
