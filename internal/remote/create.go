package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
)

// errExists is the cause of an *Error of an object that is there already, with other content.
var errExists = errors.New("the object exists already")

// Create writes an object unless there is one, by a conditional request (If-None-Match). One of the same content is no
// error.
func Create(ctx context.Context, url string, content []byte) error {
	loc, err := parse(url)
	if err != nil {
		return err
	}
	return processSettings().create(ctx, loc, sectionOf(content))
}

func (s *settings) create(ctx context.Context, loc location, r *io.SectionReader) error {
	if loc.url != nil {
		return &PathError{loc.text, errReadOnly}
	}
	c, err := s.client(ctx, loc.text)
	if err != nil {
		return err
	}
	err = s.retry(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, partTimeout)
		defer cancel()
		return c.put(ctx, loc.object(), r)
	})
	// If-None-Match failed: there is an object.
	if errors.Is(err, ErrChanged) { // or an earlier attempt wrote it, whose response was lost
		var same bool
		if same, err = s.sameContent(ctx, loc, r); err == nil && !same {
			err = errExists
		}
	}
	if err != nil {
		return failed(loc.text, err)
	}
	return nil
}

// sameContent reports whether an object has the content of r.
func (s *settings) sameContent(ctx context.Context, loc location, r *io.SectionReader) (bool, error) {
	f, err := s.open(ctx, loc, pool())
	if err != nil {
		return false, err
	}
	defer f.Close()
	if f.size != r.Size() {
		return false, nil
	}
	was, now := sha256.New(), sha256.New()
	if _, err := io.Copy(was, io.NewSectionReader(f, 0, f.size)); err != nil {
		return false, err
	}
	_, err = io.Copy(now, io.NewSectionReader(r, 0, r.Size()))
	return bytes.Equal(was.Sum(nil), now.Sum(nil)), err
}
