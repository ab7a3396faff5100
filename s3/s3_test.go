package s3

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/remote/signing"
)

// The search for a role ends on machines that have none, and where its server does not answer.
func TestSearchForARoleIsLimited(t *testing.T) {
	if d := metadataClient(&http.Transport{}).Timeout; d < time.Second || d > 30*time.Second {
		t.Errorf("a request for credentials has the limit %v", d)
	}
}

// An imported package signs with the credentials of the environment, and reports that there are none.
func TestSigner(t *testing.T) {
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, name := range []string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	for key, want := range map[string]bool{"": false, "key": true} {
		t.Setenv("AWS_ACCESS_KEY_ID", key)
		t.Setenv("AWS_SECRET_ACCESS_KEY", key)
		t.Setenv("AWS_SESSION_TOKEN", "token")
		s := signing.New(&http.Transport{})
		r, err := http.NewRequest(http.MethodGet, "https://host/bucket/key", nil)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := s.Sign(r, "eu-west-1")
		if (err == nil) != want || (s.Check() == nil) != want {
			t.Fatalf("with the key %q: %v, %v", key, err, s.Check())
		}
		if err != nil {
			continue
		}
		h := signed.Header
		if !strings.HasPrefix(h.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=key/") ||
			!strings.Contains(h.Get("Authorization"), "/eu-west-1/s3/") || h.Get("X-Amz-Security-Token") != "token" {
			t.Errorf("headers %v", h)
		}
	}
}
