package oci

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

// Blobs that are not as listed are errors, and leave nothing.
func TestOCILies(t *testing.T) {
	s := withReferrers(t)
	l := pushed(t, s, registrytest.Fixture(t, "mlp"))
	f := l.Files[0]
	for name, change := range map[string]func(body []byte) ([]byte, int64){
		"other bytes":    func(b []byte) ([]byte, int64) { return append([]byte("x"), b[1:]...), int64(len(b)) },
		"shorter":        func(b []byte) ([]byte, int64) { return b[1:], int64(len(b) - 1) },
		"longer":         func(b []byte) ([]byte, int64) { return append(b, 'x'), int64(len(b) + 1) },
		"endless":        func(b []byte) ([]byte, int64) { return append(b, 'x'), -1 },
		"unknown length": func(b []byte) ([]byte, int64) { return append([]byte("x"), b[1:]...), -1 },
	} {
		s.set(nil, func(r *http.Response) error {
			if r.Request.Method != http.MethodGet || !strings.HasSuffix(r.Request.URL.Path, f.SHA256) {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			body, r.ContentLength = change(body)
			r.Header.Del("Content-Length")
			if r.ContentLength >= 0 {
				r.Header.Set("Content-Length", fmt.Sprint(r.ContentLength))
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			return err
		})
		dir := t.TempDir()
		_, err := l.Pull(t.Context(), dir, registrytest.Quick)
		if !registrytest.IsA[*registry.ContentError](err) || !strings.Contains(err.Error(), "mlp.onnx: ") {
			t.Errorf("%s: got %v", name, err)
		}
		for _, e := range registrytest.Visible(t, dir) {
			t.Errorf("%s: left %s", name, e)
		}
	}
}

// Manifests that are not those of their digest are errors.
func TestOCIWrongManifests(t *testing.T) {
	s := withReferrers(t)
	l := pushed(t, s, registrytest.Complete(t))
	s.set(nil, func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, "/manifests/"+l.Digest.Digest) ||
			strings.HasSuffix(r.Request.URL.Path, "/manifests/1") {
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(bytes.Replace(body, []byte("external_a"), []byte("external_b"), 1)))
			return err
		}
		return nil
	})
	for _, ref := range []registry.Reference{l.Reference, l.Digest} {
		if _, err := registry.List(t.Context(), ref, registrytest.Quick); !registrytest.IsA[*registry.ContentError](err) {
			t.Errorf("%s: got %v", ref, err)
		}
	}
	s.set(nil, func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, "/manifests/"+l.Digest.Digest) {
			r.Header.Set("Docker-Content-Digest", "sha256:"+registrytest.Sum(nil))
		}
		return nil
	})
	if _, err := registry.List(t.Context(), l.Digest, registrytest.Quick); !registrytest.IsA[*registry.ContentError](err) {
		t.Errorf("got %v", err)
	}
}

// A registry that stores other bytes than the uploaded ones is an error.
func TestOCIOtherDigestAfterUpload(t *testing.T) {
	s := withReferrers(t)
	s.set(nil, func(r *http.Response) error {
		if r.Request.Method == http.MethodPut && strings.Contains(r.Request.URL.Path, "/uploads/") {
			r.Header.Set("Docker-Content-Digest", "sha256:"+registrytest.Sum(nil))
		}
		return nil
	})
	if _, err := registry.Push(t.Context(), s.ref(t, "models/m:1"), registrytest.Fixture(t, "mlp"),
		registrytest.Quick); !registrytest.IsA[*registry.ContentError](err) {
		t.Errorf("got %v", err)
	}
}

// layered stores a manifest whose layers have the given names and the content "x".
func layered(t *testing.T, s *server, mediaType string, names ...string) registry.Reference {
	t.Helper()
	s.put(t, "models/m", "", "", []byte("x"))
	s.put(t, "models/m", "", "", []byte("{}"))
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	m.Config = descriptor(registry.File{Name: "config", Size: 2, SHA256: registrytest.Sum([]byte("{}"))}, mediaConfig)
	for _, name := range names {
		m.Layers = append(m.Layers, descriptor(registry.File{Name: name, Size: 1, SHA256: registrytest.Sum([]byte("x"))},
			mediaType))
	}
	b, err := jsonBlob(m.MediaType, m)
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, "models/m", b.Digest.String(), b.MediaType, b.content)
	return registrytest.Parse(t, "oci://"+s.host+"/models/m@"+b.Digest.String())
}

// No name leaves the folder, on any operating system, or hides one.
func TestOCIHostileNames(t *testing.T) {
	s := withReferrers(t)
	for _, c := range [][]string{
		{"../x.onnx"}, {"a/../../x"}, {"/etc/x"}, {"a//b"}, {"./x"}, {"a/."}, {`..\x`}, {`a\b`}, {"C:/x"}, {"C:x"},
		{`\\host\x`}, {"x.onnx:stream"},
		{"NUL"}, {"con.onnx"}, {"a/COM1.txt"}, {"lpt¹"}, {"x."}, {"x "}, {".git/hooks/post-checkout"}, {"a/.ssh"}, {"x\x00y"},
		{"x\ny"}, {"a*"}, {strings.Repeat("x", 1025)},
		{"x.onnx", "X.onnx"}, {"x.onnx", "x.onnx"}, {"a", "a/b"}, {"A/b", "a"},
	} {
		l, err := registry.List(t.Context(), layered(t, s, mediaWeight, c...), registrytest.Quick)
		if !registrytest.IsA[*registry.ContentError](err) {
			t.Errorf("%q: got %v, %v", c, l, err)
		}
	}
	for _, c := range [][]string{{"model.onnx", "onnx/a b.data", "ünï/x..y", "com10"}} {
		l, err := registry.List(t.Context(), layered(t, s, mediaWeight, c...), registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if _, err := l.Pull(t.Context(), dir, registrytest.Quick); err != nil {
			t.Errorf("%q: %v", c, err)
		}
		for _, name := range c {
			if registrytest.Read(t, filepath.Join(dir, name)) != "x" {
				t.Error(name)
			}
		}
	}
}

// A link that is there already does not lead a file out of the folder.
func TestOCILinksInTheFolder(t *testing.T) {
	s := withReferrers(t)
	l, err := registry.List(t.Context(), layered(t, s, mediaWeight, "a/x.onnx"), registrytest.Quick)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "a/x.onnx"} {
		outside, dir := t.TempDir(), t.TempDir()
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o777), os.Symlink(filepath.Join(outside, "y"), at)); err != nil {
			t.Skip(err)
		}
		if _, err := l.Pull(t.Context(), dir, registrytest.Quick); err == nil || len(registrytest.Visible(t, outside)) > 0 {
			t.Errorf("%s: %v, outside: %v", name, err, registrytest.Visible(t, outside))
		}
	}
}

// Other artifacts are one clear error.
func TestOCIForeignManifests(t *testing.T) {
	s := withReferrers(t)
	index := []byte(`{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []}`)
	s.put(t, "models/index", "1", ocispec.MediaTypeImageIndex, index)
	for _, c := range []struct {
		ref  registry.Reference
		want string
	}{
		{s.ref(t, "models/index:1"), "is not the manifest of one model"},
		{layered(t, s, ocispec.MediaTypeImageLayerGzip, "x"), "archives and compressed layers"},
		{layered(t, s, mediaWeight, ""), "has no file name"},
	} {
		if _, err := registry.List(t.Context(), c.ref, registrytest.Quick); !registrytest.IsA[*registry.ContentError](err) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	for _, name := range []string{"models/none:1", "models/index:2"} {
		if _, err := registry.List(t.Context(), s.ref(t, name),
			registrytest.Quick); !registrytest.IsA[*registry.TransferError](err) || !strings.Contains(err.Error(), "not found") {
			t.Errorf("got %v", err)
		}
	}
}

// Referrers of other tools are left alone, and files of the same name differ in digits of their digests.
func TestOCIReferrersOfTheSameName(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a := registrytest.Complete(t)
		first := pushed(t, s, a)
		signature, _ := a.Find(registry.Signature)
		if err := os.WriteFile(signature.Path, []byte("another key"), 0o666); err != nil {
			t.Fatal(err)
		}
		model, _ := a.Model()
		again, err := registry.Collect(t.Context(), model.Path, registry.CollectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		second := pushed(t, s, again)
		if second.Digest != first.Digest || len(second.Files) != len(first.Files)+1 {
			t.Fatalf("%s %s", second.Digest, registrytest.Names(second.Files))
		}
		dir := t.TempDir()
		if _, err := second.Pull(t.Context(), dir, registrytest.Quick); err != nil {
			t.Fatal(err)
		}
		registrytest.Same(t, dir, second.Files)
	})
}

// The report is that which the manifest names: a later one cannot replace it.
func TestOCIReportOfTheManifest(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a := registrytest.Complete(t)
		l := pushed(t, s, a)
		want, _ := l.Find(registry.ReportJSON)
		p, err := pack(a)
		if err != nil {
			t.Fatal(err)
		}
		p.referrers, p.empty = nil, nil
		other := []byte(`{"verdict": "passed"}`)
		if err := p.packReferrer(registry.File{Name: want.Name, Size: int64(len(other)), SHA256: registrytest.Sum(other),
			Role: registry.ReportJSON}); err != nil {
			t.Fatal(err)
		}
		s.put(t, "models/m", "", "", other)
		r, err := open(l.Reference, registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Manifests().Push(t.Context(), p.referrers[0].Descriptor, p.referrers[0].reader()); err != nil {
			t.Fatal(err)
		}
		again, err := registry.List(t.Context(), l.Reference, registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := again.Find(registry.ReportJSON); got != want || len(again.Files) != len(l.Files) {
			t.Errorf("got %+v of %s", got, registrytest.Names(again.Files))
		}
	})
}
