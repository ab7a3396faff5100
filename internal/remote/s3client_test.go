package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/mcompress/mcompress/s3"
)

// responses answers requests in this process, with status 200 and a body that the function returns.
type responses func(r *http.Request) (status int, header http.Header, body string)

func (f responses) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header, body := f(r)
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func clientOf(t *testing.T, endpoint, region string, f responses) *s3Client {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	credentialsOf(t, endpoint)
	t.Setenv("AWS_SESSION_TOKEN", "token")
	c, err := newSettings(1).client(t.Context(), "s3://bucket/key")
	if err != nil {
		t.Fatal(err)
	}
	return &s3Client{http: &http.Client{Transport: f}, endpoint: u, signer: c.signer, region: region,
		regions: map[string]string{}}
}

// Amazon's buckets have hosts of their own, unless the certificate would not hold for them; those of other servers are
// in the path.
func TestAddresses(t *testing.T) {
	for _, c := range []struct{ endpoint, region, bucket, key, want string }{
		{"https://oss-cn-hangzhou.aliyuncs.com", "us-east-1", "b", "k", "https://b.oss-cn-hangzhou.aliyuncs.com/k"},
		{"https://notamazonaws.com", "us-east-1", "b", "k~!'()*", "https://notamazonaws.com/b/k~%21%27%28%29%2A"},
		{amazon, "eu-west-1", "b", "a/m+ü.onnx", "https://b.s3.dualstack.eu-west-1.amazonaws.com/a/m%2B%C3%BC.onnx"},
		{amazon, "eu-west-1", "b.c", "k", "https://s3.dualstack.eu-west-1.amazonaws.com/b.c/k"},
		{amazon, "cn-north-1", "b", "k", "https://b.s3.dualstack.cn-north-1.amazonaws.com.cn/k"},
		{"https://storage.googleapis.com", "auto", "b", "k", "https://b.storage.googleapis.com/k"},
		{"http://127.0.0.1:9", "us-east-1", "b", "a b", "http://127.0.0.1:9/b/a%20b"},
	} {
		if got := clientOf(t, c.endpoint, "", nil).url(object{c.bucket, c.key}, c.region).String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// The region of a bucket is that of the first response, in its header or its body, and is not requested again. One that
// is set stays.
func TestRegionOfABucket(t *testing.T) {
	malformed := "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>"
	for name, refusal := range map[string]struct {
		status int
		header http.Header
		body   string
	}{
		"redirect":  {http.StatusMovedPermanently, http.Header{"X-Amz-Bucket-Region": {"eu-west-1"}}, ""},
		"signature": {http.StatusBadRequest, nil, malformed},
	} {
		var hosts []string
		server := func(r *http.Request) (int, http.Header, string) {
			hosts = append(hosts, r.URL.Host)
			if !strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/s3/") {
				return refusal.status, refusal.header, refusal.body
			}
			return http.StatusOK, nil, ""
		}
		c := clientOf(t, amazon, "", server)
		for range 2 {
			if _, err := c.head(t.Context(), object{"b", "k"}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		const east, west = "b.s3.dualstack.us-east-1.amazonaws.com", "b.s3.dualstack.eu-west-1.amazonaws.com"
		if want := []string{east, west, west}; !slices.Equal(hosts, want) {
			t.Errorf("%s: requests to %v, want %v", name, hosts, want)
		}
		hosts = nil
		if _, err := clientOf(t, amazon, "us-east-2", server).head(t.Context(), object{"b", "k"}); err == nil ||
			len(hosts) != 1 {
			t.Errorf("%s: %d requests with a region that is set, %v", name, len(hosts), err)
		}
	}
}

// A request is signed with the digest of its body, and has the session's token.
func TestSignature(t *testing.T) {
	c := clientOf(t, "http://127.0.0.1:9", "", func(r *http.Request) (int, http.Header, string) {
		body, _ := io.ReadAll(r.Body)
		const sum = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73" // printf content | sha256sum
		h := r.Header
		if h.Get("X-Amz-Content-Sha256") != sum || string(body) != "content" || r.ContentLength != 7 ||
			h.Get("X-Amz-Security-Token") != "token" ||
			!strings.HasPrefix(h.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=key/") || h.Get("If-None-Match") != "*" {
			t.Errorf("%v %q", r.Header, body)
		}
		return http.StatusOK, nil, ""
	})
	if err := c.put(t.Context(), object{"b", "k"}, sectionOf([]byte("content"))); err != nil {
		t.Error(err)
	}
}

// An error after the status of a success is one, and passes if its code does.
func TestErrorsOfSuccesses(t *testing.T) {
	for body, want := range map[string]string{
		"<Error><Code>InternalError</Code><Message>m</Message></Error>": "status 500 InternalError: m",
		"\n \n<CompleteMultipartUploadResult/>":                         "",
		"":                                                              "the response is no XML: EOF",
	} {
		c := clientOf(t, "http://127.0.0.1:9", "", func(*http.Request) (int, http.Header, string) {
			return http.StatusOK, nil, body
		})
		err := (&multipart{c, object{"b", "k"}, "id"}).complete(t.Context(), []part{{1, "e"}})
		if (err == nil) != (want == "") || err != nil && (err.Error() != want || !transient(err)) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// A list of several pages has all keys, also those with characters that XML cannot have.
func TestPagesOfAList(t *testing.T) {
	var mu sync.Mutex
	var tokens []string
	c := clientOf(t, "http://127.0.0.1:9", "", func(r *http.Request) (int, http.Header, string) {
		mu.Lock()
		defer mu.Unlock()
		token := r.URL.Query().Get("continuation-token")
		tokens = append(tokens, token)
		page :=
			"<EncodingType>url</EncodingType><Contents><Key>p%2Fa%01+b</Key></Contents><IsTruncated>true</IsTruncated><NextContinuationToken>a/b+c</NextContinuationToken>"
		if token != "" {
			page = "<Contents><Key>p/a%01</Key></Contents><IsTruncated>false</IsTruncated>"
		}
		return http.StatusOK, nil, "<ListBucketResult>" + page + "</ListBucketResult>"
	})
	keys, err := newSettings(1).keys(context.Background(), c, "b", "p/")
	if want := []string{"p/a\x01 b", "p/a%01"}; err != nil || !slices.Equal(keys, want) ||
		fmt.Sprint(tokens) != "[ a/b+c]" {
		t.Errorf("%q by %q, %v", keys, tokens, err)
	}
	c = clientOf(t, "http://127.0.0.1:9", "", func(*http.Request) (int, http.Header, string) {
		return http.StatusOK, nil, "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"
	})
	if _, _, err := c.keys(context.Background(), "b", "", ""); err == nil {
		t.Error("a list without its next page is no error")
	}
}
