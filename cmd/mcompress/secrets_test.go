package main

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A password or signature that a user gives in a reference or URL is in no output, whichever command refuses it, and in no
// file that is left.
func TestNoSecretIsPrintedOrStored(t *testing.T) {
	const secret = "hunter2"
	model, err := filepath.Abs(filepath.Join("..", "..", "fixtures", "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("model.onnx", fileContent(t, model), 0o644); err != nil {
		t.Fatal(err)
	}
	// Not a port that is closed: connections are tried again for 15 seconds.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, at := range []string{
		"oci://user:" + secret + "@" + host + "/m/x:1", "oci://" + secret + "@" + host + "/m/x:1",
		"mlflow://user:" + secret + "@" + host + "/m", "mlflow://user:" + secret + "@" + host + "/m@champion",
		"https://user:" + secret + "@" + host + "/m.onnx", "http://user:p/" + secret + "@" + host + "/m.onnx",
		"http://" + host + "/m.onnx?sig=" + secret, "http://" + host + "/m.onnx#" + secret,
		"ftp://user:" + secret + "@host/m.onnx",
	} {
		if err := os.WriteFile("list", []byte(at+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"pull", "--plain-http", "-o", "out", at}, {"push", "--plain-http", at, "model.onnx"}, {"promote", "--plain-http", at, "best"},
			{"quantize", "--plain-http", "-o", "q.onnx", at}, {"quantize", "--plain-http", "--files-from", "list", "-o", "out/"},
			{"quantize", "--push", at, "-o", "q.onnx", "model.onnx"}, {"quantize", "-o", at, "model.onnx"},
			{"quantize", "--baseline", at, "--max-baseline-size-ratio", "1", "-o", "q.onnx", "model.onnx"},
			{"quantize", "--data", at, "-o", "q.onnx", "model.onnx"}, {"inspect", at}, {"verify", at, at}, {"verify-report", at},
			{"pack", "-o", "p.mcz", at}, {"unpack", "-o", "u.onnx", at}, {"memory", at}, {"bench", at}, {"report", at, at},
			{"plan", "-n", "1", "-o", at, "--", "quantize", "model.onnx"}, {"plan", "-n", "1", "-o", "plan", "--", "quantize", at},
			{"work", at, "--index", "0"}, {"finalize", at}, {"apply", at, "model.onnx"}, {"sign", "--key", at, "model.onnx"},
		} {
			for _, global := range [][]string{nil, {"--json"}} {
				var stdout, stderr bytes.Buffer
				line := append(append([]string{"mcompress"}, global...), args...)
				if code := run(t.Context(), line, &stdout, &stderr); code == 0 {
					t.Errorf("%s: exit code 0", line)
				}
				if text := stdout.String() + stderr.String(); strings.Contains(text, secret) {
					t.Errorf("%s: %s", line, text)
				}
			}
		}
	}
	if err := os.Remove("list"); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && (strings.Contains(path, secret) || e.Type().IsRegular() && bytes.Contains(fileContent(t, path), []byte(secret))) {
			t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
