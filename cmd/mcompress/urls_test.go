package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exitsWith runs mcompress, and returns what it printed.
func exitsWith(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	if got := run(t.Context(), append([]string{"mcompress"}, args...), &out, &err); got != code {
		t.Fatalf("%s: exit code %d, want %d: %s", args, got, code, err.String())
	}
	return out.String(), err.String()
}

// A model at a signed URL, with data files next to it, is compressed as one on disk. The signature is sent with every
// request, and neither printed nor stored.
func TestSignedURL(t *testing.T) {
	fixtures := filepath.Join("..", "..", "fixtures")
	files := http.FileServer(http.Dir(fixtures))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "signature=top%2Fsecret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	at := func(name string) string { return server.URL + "/" + name + "?signature=top%2Fsecret" }
	dir, local, list := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte(at("external.onnx")+"\n"+at("mlp.onnx")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	runs := func(code int, args ...string) {
		t.Helper()
		stdout, stderr := exitsWith(t, code, args...)
		printed.WriteString(stdout + stderr)
	}
	runs(0, "quantize", at("external.onnx"), "-o", dir+"/")
	runs(0, "quantize", filepath.Join(fixtures, "external.onnx"), "-o", local+"/")
	for _, name := range []string{"external.dynamic-int8.onnx", "external.dynamic-int8.report.json"} {
		if got, want := fileContent(t, filepath.Join(dir, name)),
			fileContent(t, filepath.Join(local, name)); string(got) != string(want) {
			t.Errorf("%s differs from that of the model on disk", name)
		}
	}
	runs(0, "--json", "quantize", "--files-from", list, "-o", filepath.Join(dir, "many"))
	runs(0, "quantize", "--method", "static-int8", at("mlp.onnx"), "--data", at("digits_test.npz"),
		"-o", filepath.Join(dir, "static.onnx"))
	runs(0, "verify", at("mlp.onnx"), filepath.Join(dir, "static.onnx"), "--data", at("digits_test.npz"))
	runs(0, "inspect", at("external.onnx"))
	runs(0, "memory", at("mlp.onnx"))
	runs(0, "--json", "memory", at("mlp.onnx"))
	runs(0, "bench", at("mlp.onnx"), "--time", "10ms")
	runs(0, "--json", "bench", at("mlp.onnx"), "--time", "10ms")
	runs(0, "finetune", at("mlp.onnx"), "--teacher", at("mlp.onnx"), "--data", at("digits_test.npz"), "--steps", "2",
		"-o", filepath.Join(dir, "tuned.onnx"))
	runs(exitIO, "inspect", at("none.onnx"))
	runs(exitIO, "inspect", server.URL+"/mlp.onnx?signature=topsecret")
	runs(exitUsage, "quantize", at("mlp.onnx"))
	runs(exitUsage, "sign", at("mlp.onnx"))
	if strings.Contains(printed.String(), "secret") {
		t.Errorf("a signature is printed: %s", printed.String())
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(string(fileContent(t, path)), "secret") {
			t.Errorf("%s has a signature", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
