package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/remote/signing"
)

// An s3Client sends the requests of the S3 API (REST, signature version 4) to one server. Each method is one request.
type s3Client struct {
	http     *http.Client
	endpoint *url.URL
	signer   signing.Signer
	region   string // of all buckets; empty for Amazon's, whose responses name it

	mu      sync.Mutex
	regions map[string]string // by bucket
}

// An object is a bucket with a key, which is empty for the bucket itself.
type object struct{ bucket, key string }

func (l location) object() object { return object{l.bucket, l.key} }

// An s3Request is a request without its signature.
type s3Request struct {
	method string
	object
	query  url.Values
	header http.Header
	body   *io.SectionReader // nil for none
}

// do sends a request. A status that is no success is a *statusError.
func (c *s3Client) do(ctx context.Context, r s3Request) (*http.Response, error) {
	resp, err := c.attempt(ctx, r)
	var status *statusError
	// Once: a server that names another region each time would be followed for ever.
	if errors.As(err, &status) && c.learn(r.bucket, status.region) {
		return c.attempt(ctx, r)
	}
	return resp, err
}

// attempt signs and sends a request once.
func (c *s3Client) attempt(ctx context.Context, r s3Request) (*http.Response, error) {
	region := c.regionOf(r.bucket)
	var body io.Reader = http.NoBody
	// The signature has the digest of the body, so that a server stores no other content than that of the file, without
	// a checksum of its own kind.
	sum := sha256.New()
	if r.body != nil && r.body.Size() > 0 {
		if _, err := io.Copy(sum, io.NewSectionReader(r.body, 0, r.body.Size())); err != nil {
			return nil, err
		}
		// Each attempt has a position of its own, as the transport may read for the one before until later.
		body = io.NewSectionReader(r.body, 0, r.body.Size())
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.url(r.object, region).String(), body)
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.body != nil {
		req.ContentLength = r.body.Size()
	}
	req.URL.RawQuery = r.query.Encode()
	req.Header.Set("User-Agent", "mcompress")
	req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum.Sum(nil)))
	signed, err := c.signer.Sign(req, region)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(signed)
	switch {
	case err != nil:
		return nil, withoutURL(err)
	case resp.StatusCode < http.StatusMultipleChoices:
		return resp, nil
	}
	defer drained(resp.Body)
	return nil, responseError(resp)
}

// url is the address of an object. The servers of Amazon, Google and Alibaba have a host for each bucket, and Amazon's
// one for each region; Alibaba's refuse other addresses. A certificate for *.HOST does not hold for a bucket whose name
// has dots; it is in the path, as for other servers.
func (c *s3Client) url(o object, region string) *url.URL {
	u := &url.URL{Scheme: c.endpoint.Scheme, Host: c.endpoint.Host}
	if c.endpoint.String() == amazon {
		u.Host = "s3.dualstack." + region + ".amazonaws.com"
		if strings.HasPrefix(region, "cn-") {
			u.Host += ".cn"
		}
	}
	u.Path = "/" + o.bucket + "/" + o.key
	host := strings.TrimSuffix(u.Hostname(), ".cn")
	isOf := func(domain string) bool { return strings.HasSuffix("."+host, domain) }
	if !strings.Contains(o.bucket, ".") &&
		(isOf(".amazonaws.com") || isOf(".storage.googleapis.com") || isOf(".aliyuncs.com")) {
		u.Host, u.Path = o.bucket+"."+u.Host, "/"+o.key
	}
	u.RawPath = escaped(u.Path) // as it is signed
	return u
}

// escaped is a path in the form that signatures have: all bytes but those of letters, digits, "-._~" and "/" are
// escaped. net/url leaves more of them.
func escaped(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	}
	return strings.Join(segments, "/")
}

// regionOf is the region that requests for a bucket are signed for.
func (c *s3Client) regionOf(bucket string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.region, c.regions[bucket], "us-east-1") // as other servers have it
}

// learn stores the region of a bucket. It reports false if it is known: the request would have the same response.
func (c *s3Client) learn(bucket, region string) bool {
	if region == "" || region == c.regionOf(bucket) || c.region != "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.regions[bucket] = region
	return true
}

// xml sends a request and decodes the response. S3 begins some responses before it knows the result, so that an error
// may have the status of a success.
func (c *s3Client) xml(ctx context.Context, r s3Request, out any) error {
	resp, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	defer drained(resp.Body)
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	if err != nil {
		return err
	}
	var root struct {
		XMLName       xml.Name
		Code, Message string
	}
	if err := bounded.XML(text, &root); err != nil {
		return fmt.Errorf("the response is no XML: %w", err)
	}
	// The status that this error would have had, so that it is transient as InternalError and SlowDown are.
	if root.XMLName.Local == "Error" {
		return &statusError{status: http.StatusInternalServerError, code: root.Code, message: root.Message}
	}
	return bounded.XML(text, out)
}

// maxDocument limits responses in memory: the largest are pages of 1000 keys, of up to 1024 bytes, which are escaped.
const maxDocument = 8 << 20

// empty sends a request whose response has no content that matters, and returns its header.
func (c *s3Client) empty(ctx context.Context, r s3Request) (http.Header, error) {
	resp, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return resp.Header, drained(resp.Body)
}

// head returns the header of an object.
func (c *s3Client) head(ctx context.Context, o object) (http.Header, error) {
	return c.empty(ctx, s3Request{method: http.MethodHead, object: o})
}

// put writes an object unless there is one.
func (c *s3Client) put(ctx context.Context, o object, body *io.SectionReader) error {
	header := http.Header{"If-None-Match": {"*"}}
	_, err := c.empty(ctx, s3Request{method: http.MethodPut, object: o, header: header, body: body})
	return err
}

func (c *s3Client) remove(ctx context.Context, o object) error {
	_, err := c.empty(ctx, s3Request{method: http.MethodDelete, object: o})
	return err
}

// keys are those of one page of a list, with the token of the next page; empty for none.
func (c *s3Client) keys(ctx context.Context, bucket, prefix, token string) (keys []string, next string, err error) {
	query := url.Values{"list-type": {"2"}, "prefix": {prefix}, "encoding-type": {"url"}}
	if token != "" {
		query.Set("continuation-token", token)
	}
	var out struct {
		EncodingType          string
		NextContinuationToken string
		IsTruncated           bool
		Contents              []struct{ Key string }
	}
	if err := c.xml(ctx, s3Request{method: http.MethodGet, object: object{bucket: bucket}, query: query},
		&out); err != nil {
		return nil, "", err
	}
	for _, o := range out.Contents {
		key, err := decoded(o.Key, out.EncodingType)
		if err != nil {
			return nil, "", err
		}
		keys = append(keys, key)
	}
	// Without this the rest of the list would be missing without an error.
	if out.IsTruncated && out.NextContinuationToken == "" {
		return nil, "", errors.New("the server has more objects, and does not tell how to list them")
	}
	return keys, out.NextContinuationToken, nil
}

// decoded is a key of a list: XML cannot have all characters that keys can.
func decoded(key, encoding string) (string, error) {
	if encoding != "url" {
		return key, nil
	}
	return url.QueryUnescape(key)
}

// incomplete are the multipart uploads of an object that are neither complete nor aborted. One page has them: keys that
// only begin with its key are after it.
func (c *s3Client) incomplete(ctx context.Context, o object) (ids []string, err error) {
	query := url.Values{"uploads": {""}, "prefix": {o.key}, "encoding-type": {"url"}}
	var out struct {
		EncodingType string
		Upload       []struct {
			Key string
			ID  string `xml:"UploadId"`
		}
	}
	if err := c.xml(ctx, s3Request{method: http.MethodGet, object: object{bucket: o.bucket}, query: query},
		&out); err != nil {
		return nil, err
	}
	for _, u := range out.Upload {
		if key, err := decoded(u.Key, out.EncodingType); err == nil && key == o.key {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

// A multipart is a multipart upload of a server.
type multipart struct {
	*s3Client
	object
	id string
}

// multipart begins a multipart upload.
func (c *s3Client) multipart(ctx context.Context, o object, header http.Header) (*multipart, error) {
	var out struct {
		ID string `xml:"UploadId"`
	}
	err := c.xml(
		ctx,
		s3Request{method: http.MethodPost, object: o, query: url.Values{"uploads": {""}}, header: header},
		&out,
	)
	return &multipart{c, o, out.ID}, err
}

// A part is a part of a multipart upload, as the request that completes it names it.
type part struct {
	Number int `xml:"PartNumber"`
	ETag   string
}

// request is a request for the upload, or for its part of a number from 1; 0 for none.
func (m *multipart) request(method string, number int) s3Request {
	r := s3Request{method: method, object: m.object, query: url.Values{"uploadId": {m.id}}}
	if number > 0 {
		r.query.Set("partNumber", strconv.Itoa(number))
	}
	return r
}

// send sends a part.
func (m *multipart) send(ctx context.Context, number int, body *io.SectionReader) (part, error) {
	r := m.request(http.MethodPut, number)
	r.body = body
	header, err := m.empty(ctx, r)
	return part{number, strings.Trim(header.Get("ETag"), `"`)}, err
}

// copy makes the server copy n bytes from off of an object as a part.
func (m *multipart) copy(ctx context.Context, number int, from object, etag string, off, n int64) (part, error) {
	r := m.request(http.MethodPut, number)
	r.header = http.Header{
		"X-Amz-Copy-Source":          {escaped(from.bucket + "/" + from.key)},
		"X-Amz-Copy-Source-Range":    {fmt.Sprintf("bytes=%d-%d", off, off+n-1)},
		"X-Amz-Copy-Source-If-Match": {etag},
	}
	var out struct{ ETag string }
	err := m.xml(ctx, r, &out)
	return part{number, strings.Trim(out.ETag, `"`)}, err
}

// complete makes the object appear.
func (m *multipart) complete(ctx context.Context, parts []part) error {
	text, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []part
	}{Part: parts})
	if err != nil {
		return err
	}
	r := m.request(http.MethodPost, 0)
	r.header = http.Header{"Content-Type": {"application/xml"}}
	r.body = sectionOf(text)
	return m.xml(ctx, r, &struct{}{})
}

// abort removes the parts.
func (m *multipart) abort(ctx context.Context) error {
	_, err := m.empty(ctx, m.request(http.MethodDelete, 0))
	return err
}

// exists is an error if the server does not have the upload.
func (m *multipart) exists(ctx context.Context) error {
	r := m.request(http.MethodGet, 0)
	r.query.Set("max-parts", "1")
	_, err := m.empty(ctx, r)
	return err
}

func sectionOf(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}
