package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/retry"
)

// An Upload is a file on disk and the URL that it is written to.
type Upload struct {
	Path   string
	URL    string // s3://BUCKET/KEY
	SHA256 string // stored with the object, so that it is known without reading the object; empty for none
	Source string // the ModelTag that the file was made of, which is stored with the object; empty for none
	// With the same content, which the server copies instead of receiving the file; the zero value for none.
	From Object
}

// An Object is one of a bucket.
type Object struct{ URL, ETag string }

// Parts of uploads have partSize bytes, or more where the file would have more than maxParts.
const (
	partSize = 16 << 20
	maxParts = 10000 // of S3
)

// copySize is partSize of objects that the server copies: so many bytes are copied within the time limit of a response.
const copySize = 256 << 20

// maxUploads is the number of parts that are sent at a time.
const maxUploads = 4

// partTimeout limits the time of sending a part.
const partTimeout = 10 * time.Minute

// The metadata of an object: its SHA-256, and the tag of its source.
const (
	metaPrefix   = "X-Amz-Meta-"
	sumHeader    = "Sha256"
	sourceHeader = "Source"
)

// CheckOutput is an error unless url is that of an object, or of a folder in a bucket, that can be written.
func CheckOutput(url string) error {
	if loc, err := parse(strings.TrimSuffix(url, "/") + "/x"); err != nil || loc.url != nil {
		return &PathError{url, errors.New("results are written to files, or to s3://BUCKET/KEY, and pushed to registries")}
	}
	return nil
}

// CheckWritable is an error if an object of that URL cannot be written with the credentials.
func CheckWritable(ctx context.Context, url string) error {
	return processSettings().checkWritable(ctx, url)
}

func (s *settings) checkWritable(ctx context.Context, url string) error {
	// Without side effects that can be seen: an upload that is begun and aborted makes no object.
	u, err := s.begin(ctx, Upload{URL: url})
	if err != nil {
		return err
	}
	return u.abort(ctx)
}

// Publish writes the files of a result. All are sent before the first one appears; they appear in this order. After an
// error nothing is left of those that have not appeared, and uploads of the same names that a killed process left are
// removed.
func Publish(ctx context.Context, files []Upload) error { return processSettings().publish(ctx, files) }

func (s *settings) publish(ctx context.Context, files []Upload) (err error) {
	var begun []*upload
	defer func() {
		for _, u := range begun {
			if !u.done {
				err = errors.Join(err, u.abort(ctx))
			}
		}
	}()
	for _, f := range files {
		u, err := s.begin(ctx, f)
		if err != nil {
			return err
		}
		begun = append(begun, u)
		if err := u.send(ctx); err != nil {
			return failed(f.URL, err)
		}
	}
	// After all parts of all files: until here nothing has appeared, and an error leaves the bucket as it was.
	for _, u := range begun {
		if err := s.retry(ctx, func() error { return u.complete(ctx) }); err != nil {
			return failed(u.file.URL, err)
		}
	}
	return nil
}

var errReadOnly = errors.New("https:// is read-only: write to s3://BUCKET/KEY")

// An upload is a multipart upload that is not complete.
type upload struct {
	settings *settings
	sent     *multipart
	file     Upload
	parts    []part
	size     int64
	done     bool
}

// begin begins an upload, and removes those of the same object.
func (s *settings) begin(ctx context.Context, f Upload) (*upload, error) {
	loc, err := parse(f.URL)
	switch {
	case err != nil:
		return nil, err
	case loc.url != nil:
		return nil, &PathError{f.URL, errReadOnly}
	}
	c, err := s.client(ctx, f.URL)
	if err != nil {
		return nil, err
	}
	u := &upload{settings: s, file: f}
	// Listing them may be forbidden, and an upload that is left does no harm.
	if ids, err := c.incomplete(ctx, loc.object()); err == nil {
		for _, id := range ids {
			_ = (&multipart{c, loc.object(), id}).abort(ctx)
		}
	}
	header := http.Header{}
	for name, value := range map[string]string{
		"Content-Type":            mime.TypeByExtension(path.Ext(loc.key)), // browsers show pages by it
		metaPrefix + sumHeader:    f.SHA256,
		metaPrefix + sourceHeader: f.Source,
	} {
		if value != "" {
			header.Set(name, value)
		}
	}
	err = s.retry(ctx, func() (err error) {
		u.sent, err = c.multipart(ctx, loc.object(), header)
		return err
	})
	if err != nil {
		return nil, failed(f.URL, err)
	}
	return u, nil
}

// send sends the parts.
func (u *upload) send(ctx context.Context) error {
	f, err := os.Open(u.file.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	u.size = st.Size()
	size, sendPart := int64(partSize), func(ctx context.Context, i int, off, n int64) error {
		return u.part(ctx, i, io.NewSectionReader(f, off, n))
	}
	if u.file.From.URL != "" && u.size > 0 {
		size, sendPart = u.settings.copySize, u.copyPart
	}
	number, size := partsOf(u.size, size)
	u.parts = make([]part, number)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxUploads)
	for i := range u.parts {
		off := int64(i) * size
		g.Go(func() error { return sendPart(ctx, i, off, min(size, u.size-off)) })
	}
	return g.Wait()
}

// partsOf is the number of parts of a file, and the size of each but the last one: size, or more for at most maxParts.
// An empty file has one part.
func partsOf(total, size int64) (number, each int64) {
	each = max(size, (total+maxParts-1)/maxParts)
	return max(1, (total+each-1)/each), each
}

// part sends the part of index i.
func (u *upload) part(ctx context.Context, i int, r *io.SectionReader) error {
	return u.settings.retry(ctx, func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, partTimeout)
		defer cancel()
		u.parts[i], err = u.sent.send(ctx, i+1, r)
		return err
	})
}

// copyPart makes the server copy n bytes from off as the part of index i.
func (u *upload) copyPart(ctx context.Context, i int, off, n int64) error {
	from, err := parse(u.file.From.URL)
	if err != nil {
		return err
	}
	return u.settings.retry(ctx, func() (err error) {
		u.parts[i], err = u.sent.copy(ctx, i+1, from.object(), u.file.From.ETag, off, n)
		return err
	})
}

// complete makes the object appear. If the response to an earlier attempt was lost, it is there already.
func (u *upload) complete(ctx context.Context) error {
	err := u.sent.complete(ctx, u.parts)
	var status *statusError
	// An attempt whose response was lost may have completed the upload, which is then not found. The object is there
	// with the digest and size of this file.
	if errors.As(err, &status) && status.status == http.StatusNotFound && u.file.SHA256 != "" {
		h, unknown := u.sent.head(ctx, u.sent.object)
		if unknown == nil && h.Get("Content-Length") == strconv.FormatInt(u.size, 10) && sumOf(h) == u.file.SHA256 {
			err = nil
		}
	}
	u.done = err == nil
	return err
}

// aborts is the number of times that an upload is aborted while the server still adds parts to it.
const aborts = 4

// abort removes the parts that were sent, also after ctx ended. A part that a server still receives may be there after
// an abort, which is repeated then.
func (u *upload) abort(ctx context.Context) error {
	// An interrupted run removes its parts too, as they cost storage without being listed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	series := retry.NewSeries(u.settings.pause)
	for range aborts {
		err := u.settings.retry(ctx, func() error { return u.sent.abort(ctx) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the interrupted upload is not removed: %w", failed(u.file.URL, err))
		}
		if len(u.parts) == 0 || !series.Wait(ctx, nil) {
			break
		}
		if u.sent.exists(ctx) != nil {
			break
		}
	}
	return nil
}

// sumOf is the SHA-256 in the metadata of an object; empty for none.
func sumOf(h http.Header) string {
	sum := h.Get(metaPrefix + sumHeader)
	if len(sum) != 64 {
		return ""
	}
	return sum
}

// Source is the tag of the source that Publish stored with the object at url; empty if there is none.
func Source(ctx context.Context, url string) (string, error) {
	f, err := Open(ctx, url)
	if err != nil {
		return "", err
	}
	return f.meta.Get(metaPrefix + sourceHeader), f.Close()
}

// SHA256 is the digest that Publish stored with the object; empty if there is none.
func (f *File) SHA256() string { return sumOf(f.meta) }
