package remote

import (
	"context"
	"errors"
	"strings"
)

// List returns the names of the objects below a folder of a bucket, s3://BUCKET or s3://BUCKET/PREFIX, without the part
// that they have in common. They are sorted.
func List(ctx context.Context, url string) ([]string, error) { return processSettings().list(ctx, url) }

func (s *settings) list(ctx context.Context, url string) (names []string, err error) {
	// A URL without a key is not that of a file: x stands for one.
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

// keys returns those of the objects that begin with a prefix, sorted as S3 lists them.
func (s *settings) keys(ctx context.Context, c *s3Client, bucket, prefix string) (keys []string, err error) {
	for token := ""; ; {
		var page []string
		err := s.retry(ctx, func() (err error) {
			page, token, err = c.keys(ctx, bucket, prefix, token)
			return err
		})
		if keys = append(keys, page...); err != nil || token == "" {
			return keys, err
		}
	}
}
