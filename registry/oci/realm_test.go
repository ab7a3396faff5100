package oci

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

// A registry that is reached by HTTPS cannot have the credentials sent to a token service without TLS.
func TestTokenServiceWithoutTLS(t *testing.T) {
	sent := 0
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent++
		_, _ = io.WriteString(w, `{"token": "t"}`)
	}))
	t.Cleanup(plain.Close)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Www-Authenticate", `Bearer realm="`+plain.URL+`/token",service="s"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "https://")
	config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("user:password")))
	t.Setenv("DOCKER_CONFIG", registrytest.Written(t, map[string]string{"config.json": config}))
	o := registrytest.Quick
	o.PlainHTTP, o.Insecure = false, true
	_, err := registry.List(t.Context(), registrytest.Parse(t, "oci://"+host+"/models/m:1"), o)
	if !registrytest.IsA[*registry.TransferError](err) || sent > 0 {
		t.Errorf("%d requests, %v", sent, err)
	}
}
