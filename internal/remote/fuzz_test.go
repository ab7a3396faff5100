package remote

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/oracle"
)

// Lists of a bucket are read or refused, whatever the server sends. The parser of XML reads a response twice.
func FuzzKeys(f *testing.F) {
	page := `<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>` +
		`<Contents><Key>a%2Fb</Key></Contents></ListBucketResult>`
	for _, text := range []string{
		page, "", "<", "<Error><Code>SlowDown</Code></Error>", strings.Replace(page, "<NextContinuationToken>t</NextContinuationToken>", "", 1),
		strings.Replace(page, "%2F", "%zz", 1), strings.Repeat("<a>", 9000), "<r>" + strings.Repeat("<Contents/>", 9000) + "</r>",
		`<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><r><Contents><Key>&b;</Key></Contents></r>`,
		`<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r><Contents><Key>&a;</Key></Contents></r>`,
		"<r " + strings.Repeat(`a="b" `, 9000) + "/>", "<?xml version=\"1.0\" encoding=\"UTF-16\"?><r/>", "<r><Contents><Key>\xff\x00</Key></Contents></r>",
		`<r xmlns:x="` + strings.Repeat("n", 30000) + `">` + strings.Repeat("<x:a/>", 5000) + "</r>",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &s3Client{endpoint: &url.URL{Scheme: "http", Host: "127.0.0.1:9"}, signer: unsigned{}, regions: map[string]string{}}
		c.http = &http.Client{Transport: responses(func(*http.Request) (int, http.Header, string) { return http.StatusOK, http.Header{}, string(text) })}
		oracle.Linear.Check(t, len(text), func() {
			keys, next, err := c.keys(t.Context(), "bucket", "prefix", "")
			if err == nil && len(keys) > len(text)/len("<Key/>") {
				t.Errorf("%d keys, and %q after them, in %d bytes", len(keys), next, len(text))
			}
		})
	})
}

// unsigned leaves requests as they are.
type unsigned struct{}

func (unsigned) Check() error { return nil }

func (unsigned) Sign(r *http.Request, _ string) (*http.Request, error) { return r, nil }
