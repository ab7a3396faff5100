package remote

import (
	"context"
	"errors"
	"strings"

	"github.com/minio/minio-go/v7"
)

// List returns the names of the objects below a folder of a bucket, s3://BUCKET or s3://BUCKET/PREFIX, without the part that they have in common. They are sorted.
func List(ctx context.Context, url string) ([]string, error) { return shared().list(ctx, url) }

func (s *settings) list(ctx context.Context, url string) (names []string, err error) {
	loc, err := parse(Join(url, "x"))
	switch {
	case err != nil:
		return nil, err
	case loc.url != nil:
		return nil, &PathError{url, errors.New("files of a web server cannot be listed: use s3://BUCKET/PREFIX/")}
	}
	c, err := s.client(ctx, url)
	if err != nil {
		return nil, err
	}
	prefix := strings.TrimSuffix(loc.key, "x")
	keys, err := s.keys(ctx, c, loc.bucket, prefix)
	if err != nil {
		return nil, failed(url, err)
	}
	for _, key := range keys {
		names = append(names, strings.TrimPrefix(key, prefix))
	}
	return names, nil
}

// keys returns those of the objects that begin with a prefix, sorted.
func (s *settings) keys(ctx context.Context, c *minio.Client, bucket, prefix string) (keys []string, err error) {
	err = s.retry(ctx, func() error {
		ctx, cancel := context.WithCancel(ctx) // ends the listing after an error
		defer cancel()
		keys = nil
		for o := range c.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			if o.Err != nil {
				return libraryError(o.Err)
			}
			keys = append(keys, o.Key)
		}
		return ctx.Err()
	})
	return keys, err
}
