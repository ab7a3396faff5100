package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// firstRead is the number of bytes of the first request of a file, and the least number of those that follow: headers
// of models and data fit.
const firstRead = 64 << 10

// requestTimeout limits the time of a request with its response, which has at most segment bytes.
const requestTimeout = 2 * time.Minute

// A File is an open object, read by ranges. Its methods may be called concurrently.
type File struct {
	settings *settings
	buffers  *buffers
	ctx      context.Context // of requests, as io.ReaderAt has none
	ranger   ranger
	path     string // without the query of a URL
	size     int64
	tag      tag
	meta     http.Header // of the first response

	mu    sync.Mutex
	small []byte // the last small read
	at    int64  // its offset
	ends  [16]int64
	next  int     // in ends
	plan  []int64 // offsets at which payloads begin and end, sorted

	requests, received atomic.Int64 // requests and bytes of their responses
}

// Open opens the object of a URL. Its first bytes are read, which also returns its size and ETag. Requests end with
// ctx.
func Open(ctx context.Context, path string) (*File, error) {
	loc, err := parse(path)
	if err != nil {
		return nil, err
	}
	return processSettings().open(ctx, loc, pool())
}

func (s *settings) open(ctx context.Context, loc location, b *buffers) (*File, error) {
	r, err := s.ranger(ctx, loc)
	if err != nil {
		return nil, err
	}
	f := &File{settings: s, buffers: b, ctx: ctx, ranger: r, path: Shown(loc.text), size: -1}
	if err := s.retry(ctx, f.begin); err != nil {
		return nil, failed(loc.text, err)
	}
	return f, nil
}

// begin reads the first bytes, the size and the tag.
func (f *File) begin() error {
	resp, cancel, err := f.request(0, firstRead)
	if err != nil {
		return err
	}
	defer cancel()
	defer drained(resp.Body)
	start, end, total, err := contentRange(resp)
	switch {
	case err != nil:
		return err
	case total == 0:
	case start != 0 || end != min(firstRead, total):
		return errRange
	}
	// Ranges of two versions of a file would be read as one model without an error.
	t := tagOf(resp.Header)
	if t.etag == "" && t.modified == "" {
		return refusedf(
			"the server sends neither ETag nor Last-Modified, so that a change of the file would not be noticed",
		)
	}
	f.small = make([]byte, min(firstRead, total))
	if _, err := f.receive(resp.Body, f.small); err != nil {
		return err
	}
	f.size, f.tag, f.meta = total, t, resp.Header
	return nil
}

// request requests a range.
func (f *File) request(off, n int64) (*http.Response, context.CancelFunc, error) {
	ctx, cancel := context.WithTimeout(f.ctx, requestTimeout)
	f.requests.Add(1)
	resp, err := f.ranger.get(ctx, off, n, f.tag)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return resp, cancel, nil
}

// receive reads the bytes of a body that its headers have declared.
func (f *File) receive(body io.Reader, p []byte) (int, error) {
	n, err := io.ReadFull(body, p)
	f.received.Add(int64(n))
	if n < len(p) {
		return n, fmt.Errorf("the response ended after %d of %d bytes: %w", n, len(p), cut(err))
	}
	return n, nil
}

// cut is io.ErrUnexpectedEOF for the end of a body, and else err.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

var rangeHeader = regexp.MustCompile(`^bytes (?:(\d+)-(\d+)|\*)/(\d+)$`)

// contentRange is the range of a response, with end after its last byte, and the size of the object. An empty object
// has no range.
func contentRange(r *http.Response) (start, end, total int64, err error) {
	if r.Header.Get("Content-Range") == "" && r.Header.Get("Content-Length") == "0" {
		return 0, 0, 0, nil
	}
	m := rangeHeader.FindStringSubmatch(r.Header.Get("Content-Range"))
	if m == nil || m[1] == "" && m[3] != "0" {
		return 0, 0, 0, errRange
	}
	for i, n := range []*int64{&start, &end, &total} {
		if m[i+1] == "" {
			continue
		}
		if *n, err = strconv.ParseInt(m[i+1], 10, 64); err != nil {
			return 0, 0, 0, errRange
		}
	}
	// The header has the last byte.
	if m[1] != "" {
		end++
	}
	return start, end, total, nil
}

// fetch reads a range of the object, with attempts after errors that may pass. After a lost connection it continues
// where that ended.
func (f *File) fetch(p []byte, off int64) error {
	done := 0
	return f.settings.retry(f.ctx, func() error {
		n, err := f.fetchOnce(p[done:], off+int64(done))
		done += n
		return err
	})
}

func (f *File) fetchOnce(p []byte, off int64) (int, error) {
	resp, cancel, err := f.request(off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	defer cancel()
	defer resp.Body.Close()
	start, end, total, err := contentRange(resp)
	switch t := tagOf(resp.Header); {
	case err != nil:
		return 0, err
	// Checked although the request was conditional: not every server and proxy honours If-Match.
	case total != f.size || t.etag != f.tag.etag || t.etag == "" && t.modified != f.tag.modified:
		return 0, ErrChanged
	case start != off || end != off+int64(len(p)):
		return 0, errRange
	}
	return f.receive(resp.Body, p)
}

// Size is the number of bytes of the object.
func (f *File) Size() int64 { return f.size }

// ReadAt implements io.ReaderAt. A reader that continues where one ended, or at the start of a payload of Plan, gets
// its bytes from read-ahead: larger ranges, several at a time.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, &Error{f.path, errors.New("negative offset")}
	}
	n := 0
	for n < len(p) && off+int64(n) < f.size {
		k, err := f.readSome(p[n:min(int64(len(p)), f.size-off)], off+int64(n))
		if err != nil {
			return n, failed(f.path, err)
		}
		n += k
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readSome reads at least one byte.
func (f *File) readSome(p []byte, off int64) (int, error) {
	// Read-ahead before the last small read: its bytes are wanted next, and free a buffer when they are read.
	if n, ok, err := f.buffers.readSegment(f, p, off); ok {
		f.ended(off + int64(n))
		return n, err
	}
	if n := f.fromSmall(p, off); n > 0 {
		f.ended(off + int64(n))
		return n, nil
	}
	bound := f.bound(off)
	// A read of all that is left of a payload needs nothing after it, and a random one would waste 2 MiB.
	if f.sequential(off) && bound-off > int64(len(p)) {
		if n, ok, err := f.buffers.ahead(f, p, off, bound); ok {
			f.ended(off + int64(n))
			return n, err
		}
	}
	// Smaller reads are of headers, near which others follow: they receive a little more.
	if len(p) >= firstRead {
		f.ended(off + int64(len(p)))
		return len(p), f.fetch(p, off)
	}
	return f.readSmall(p, off)
}

// fromSmall copies bytes of the last small read.
func (f *File) fromSmall(p []byte, off int64) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if off < f.at || off >= f.at+int64(len(f.small)) {
		return 0
	}
	return copy(p, f.small[off-f.at:])
}

// readSmall reads a little more than p, for the reads that follow.
func (f *File) readSmall(p []byte, off int64) (int, error) {
	b := make([]byte, min(firstRead, f.size-off))
	if err := f.fetch(b, off); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.small, f.at = b, off
	f.remember(off + int64(len(p)))
	return copy(p, b), nil
}

// ended records the end of a read.
func (f *File) ended(off int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remember(off)
}

func (f *File) remember(off int64) {
	if f.ends[f.next] == off {
		return
	}
	f.next = (f.next + 1) % len(f.ends)
	f.ends[f.next] = off
}

// sequential reports whether a read at off continues another one, or begins a payload.
func (f *File) sequential(off int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, payload := slices.BinarySearch(f.plan, off)
	return payload || slices.Contains(f.ends[:], off)
}

// Plan sets the payloads of the object, as pairs of offset and size. They are read from their start, and read-ahead
// does not exceed them.
func (f *File) Plan(payloads [][2]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range payloads {
		f.plan = append(f.plan, p[0], p[0]+p[1])
	}
	slices.Sort(f.plan)
	f.plan = slices.Compact(f.plan)
}

// bound is the end of the payload that off is in, or of the object.
func (f *File) bound(off int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	// off+1: a payload that begins at off is not its own end.
	if i, _ := slices.BinarySearch(f.plan, off+1); i < len(f.plan) {
		return min(f.plan[i], f.size)
	}
	return f.size
}

// Close ends read-ahead.
func (f *File) Close() error {
	f.buffers.drop(f)
	return nil
}

// Tag identifies the object as it is now.
func (f *File) Tag() string { return f.tag.etag + " " + f.tag.modified }

// Path is the URL without its query.
func (f *File) Path() string { return f.path }

// Stat implements fs.File.
func (f *File) Stat() (fs.FileInfo, error) { return info{f}, nil }

// Read implements fs.File. Files are read by ReadAt.
func (f *File) Read([]byte) (int, error) { return 0, &Error{f.path, errors.ErrUnsupported} }

// info describes a File.
type info struct{ f *File }

func (i info) Name() string     { return Base(i.f.path) }
func (i info) Size() int64      { return i.f.size }
func (info) Mode() fs.FileMode  { return 0o444 }
func (info) ModTime() time.Time { return time.Time{} }
func (info) IsDir() bool        { return false }
func (info) Sys() any           { return nil }
