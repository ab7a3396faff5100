package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/registry"
)

// expect runs the program and requires an exit code, and a text in its output.
func expect(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	got, stdout, stderr := call(args...)
	if got != code || !strings.Contains(stdout+stderr, want) {
		t.Errorf("%s: exit code %d, want %d and %q\n%s%s", strings.Join(args, " "), got, code, want, stdout, stderr)
	}
}

// digestOf is the digest that a reference has in its registry.
func digestOf(t *testing.T, text string) string {
	t.Helper()
	ref, err := registry.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := registry.List(context.Background(), ref, registry.Options{PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	return s.Digest.Digest
}

// A release: two versions are pushed with their evidence, verified in the registry, and promoted while their gates
// hold.
func TestReleaseInARegistry(t *testing.T) {
	repository := "oci://" + conform.Distribution(t, t.TempDir(), "") + "/models/mlp"
	dir := t.TempDir()
	copied(t, dir, "mlp.onnx", "digits_test.npz")
	t.Chdir(dir)
	writeKeys(t)
	data := []string{"--data", "digits_test.npz", "--report", "json,md"}
	run := func(name string, more ...string) {
		t.Helper()
		must(t, append(append([]string{"quantize", "mlp.onnx", "-o", name + ".onnx", "--quiet"}, data...), more...))
		must(t, []string{"sign", "--key", "key.pem", name + ".onnx"})
		must(t, []string{"push", "--plain-http", repository + ":" + name, name + ".onnx"})
	}
	run("v1")
	run("v2", "--method", "weight-int8")

	for _, name := range []string{"v1", "v2"} {
		expect(t, exitDone, "signature", "verify-report", "--plain-http", "--key", "key.pub", repository+":"+name)
		expect(t, exitGate, "not signed with this key", "verify-report", "--plain-http", "--key", "other.pub",
			repository+":"+name)
		expect(t, exitDone, name+".sig: verified with --key only", "verify-report", "--plain-http", repository+":"+name)
	}
	expect(t, exitIO, "not found", "verify-report", "--plain-http", repository+":v3")
	expect(t, exitGate, "gate min-ratio did not hold", "promote", "--plain-http", "--min-ratio", "100",
		repository+":v1", "champion")
	expect(t, exitIO, "not found", "verify-report", "--plain-http", repository+":champion")
	expect(t, exitDone, "no model is "+repository+":champion yet", "promote",
		"--plain-http", "--max-baseline-size-ratio", "0.9", repository+":v1", "champion")
	if got, want := digestOf(t, repository+":champion"), digestOf(t, repository+":v1"); got != want {
		t.Fatalf("champion is %s, want %s", got, want)
	}

	// The alias stays with the champion while a gate relative to it does not hold.
	expect(t, exitGate, "gate max-baseline-size-ratio did not hold", "promote",
		"--plain-http", "--max-baseline-size-ratio", "0.9", repository+":v2", "champion")
	if got, want := digestOf(t, repository+":champion"), digestOf(t, repository+":v1"); got != want {
		t.Fatalf("champion is %s, want %s", got, want)
	}
	expect(t, exitDone, "champion is now", "promote", "--plain-http", "--key", "key.pub",
		"--max-baseline-size-ratio", "2", "--max-baseline-metric-drop", "0.5", repository+":v2", "champion")
	if got, want := digestOf(t, repository+":champion"), digestOf(t, repository+":v2"); got != want {
		t.Fatalf("champion is %s, want %s", got, want)
	}
	expect(t, exitDone, "max-baseline-metric-drop",
		append([]string{"quantize", "mlp.onnx", "-o", "v3.onnx",
			"--plain-http", "--baseline", repository + ":champion", "--max-baseline-metric-drop", "0.5"}, data...)...)

	// Pulled files verify without the registry, and a changed byte does not.
	must(t, []string{"pull", "--plain-http", "-o", "pulled", repository + ":champion"})
	expect(t, exitDone, "signature", "verify-report", "--key", "key.pub", "pulled")
	expect(t, exitDone, "signature", "verify-report", "--key", "key.pub", "pulled/v2.onnx")
	flip(t, "pulled/v2.onnx")
	expect(t, exitGate, "v2.sig: v2.onnx: the content is not what was signed", "verify-report", "--key", "key.pub",
		"pulled/v2.onnx")

	// An equal run in another folder pushes equal bytes.
	other := t.TempDir()
	for _, name := range []string{"mlp.onnx", "digits_test.npz", "key.pem"} {
		if err := os.Link(name, filepath.Join(other, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(other)
	run("v1", "--workers", "1")
	must(t, []string{"push", "--plain-http", repository + ":again", "v1.onnx"})
	if got, want := digestOf(t, repository+":again"), digestOf(t, repository+":v1"); got != want {
		t.Errorf("an equal run is %s, want %s", got, want)
	}

	// A model whose gates did not hold is not pushed.
	code, _, _ := call("quantize", "mlp.onnx", "-o", "bad.onnx", "--min-ratio", "100", "--push", repository+":bad",
		"--plain-http", "--quiet")
	if code != exitGate {
		t.Errorf("exit code %d, want %d", code, exitGate)
	}
	expect(t, exitGate, "the verdict is failed: 1 of 1 gates do not hold: it is not pushed", "push",
		"--plain-http", repository+":bad", "bad.rejected.onnx")
	expect(t, exitIO, "not found", "verify-report", "--plain-http", repository+":bad")
}

// copied copies fixtures.
func copied(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// flip changes the last byte of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// writeKeys writes a key pair, and the public key of another one.
func writeKeys(t *testing.T) {
	t.Helper()
	for name, public := range map[string]string{"key": "key.pub", "other": "other.pub"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		spki, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		for path, block := range map[string]*pem.Block{name + ".pem": {Type: "PRIVATE KEY", Bytes: private},
			public: {Type: "PUBLIC KEY", Bytes: spki}} {
			if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
