package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A descriptor is a reference to a blob (OCI image specification 1.1).
type descriptor struct {
	MediaType string
	Digest    string
	Size      int
	Platform  struct{ OS, Architecture string }
}

// An image is an unpacked OCI layout, read by nothing that wrote it.
type image struct{ folder string }

func unpackedImage(t *testing.T) image {
	t.Helper()
	dir := t.TempDir()
	output(t, exec.Command("tar", "-xf", only(t, "*_image.tar"), "-C", dir))
	return image{dir}
}

// blob returns the blob of a descriptor, whose digest and size it checks.
func (i image) blob(t *testing.T, d descriptor) []byte {
	t.Helper()
	algorithm, sum, _ := strings.Cut(d.Digest, ":")
	data := read(t, filepath.Join(i.folder, "blobs", algorithm, sum))
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(data)); got != d.Digest || len(data) != d.Size {
		t.Fatalf("%s: the blob has %s and %d bytes, want %d", d.Digest, got, len(data), d.Size)
	}
	return data
}

func (i image) decode(t *testing.T, d descriptor, into any) {
	t.Helper()
	if err := json.Unmarshal(i.blob(t, d), into); err != nil {
		t.Fatal(err)
	}
}

// An imageConfig is the part of an image's configuration that matters here.
type imageConfig struct {
	OS, Architecture, Created string
	Config                    struct {
		User, WorkingDir string
		Entrypoint, Env  []string
		Labels           map[string]string
	}
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	}
}

// rootFS unpacks the layers of the image for this platform, in order.
func (i image) rootFS(t *testing.T) (string, imageConfig) {
	t.Helper()
	var top, index struct {
		MediaType string
		Manifests []descriptor
	}
	if err := json.Unmarshal(read(t, filepath.Join(i.folder, "index.json")), &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("%v: %+v", err, top)
	}
	i.decode(t, top.Manifests[0], &index)
	at := slices.IndexFunc(index.Manifests, func(d descriptor) bool { return d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH })
	if at < 0 || index.MediaType != "application/vnd.oci.image.index.v1+json" {
		t.Fatalf("the index is %+v", index)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	i.decode(t, index.Manifests[at], &manifest)
	var config imageConfig
	i.decode(t, manifest.Config, &config)
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for n, d := range manifest.Layers {
		z, err := gzip.NewReader(bytes.NewReader(i.blob(t, d)))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); d.MediaType != "application/vnd.oci.image.layer.v1.tar+gzip" || got != config.RootFS.DiffIDs[n] {
			t.Errorf("layer %d: %s, %s is not %s", n, d.MediaType, got, config.RootFS.DiffIDs[n])
		}
		c := exec.Command("tar", "-xp", "-C", root)
		c.Stdin = bytes.NewReader(layer)
		output(t, c)
	}
	return root, config
}

func TestImageConfiguration(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("images are for Linux")
	}
	root, config := unpackedImage(t).rootFS(t)
	c := config.Config
	if config.OS != "linux" || config.Architecture != runtime.GOARCH || config.Created != "2023-11-14T22:13:20Z" || c.User != "65532:65532" ||
		c.WorkingDir != "/data" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/mcompress"}) || c.Labels["org.opencontainers.image.version"] != "1.2.3-rc.1" {
		t.Errorf("got %+v", config)
	}
	roots := x509.NewCertPool()
	if pem := read(t, filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt")); !roots.AppendCertsFromPEM(pem) || bytes.Count(pem, []byte("BEGIN CERTIFICATE")) < 100 {
		t.Errorf("%d certificates", bytes.Count(pem, []byte("BEGIN CERTIFICATE")))
	}
	for _, name := range []string{"LICENSE", "THIRD_PARTY_LICENSES.txt", "mcompress.cdx.json"} {
		if len(read(t, filepath.Join(root, "usr/share/doc/mcompress", name))) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

// The image's program runs as the image's user, with nothing but the image's files, and writes where a model is mounted.
func TestImageRuns(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		missing(t, "chroot is for root on Linux")
	}
	root, config := unpackedImage(t).rootFS(t)
	data := filepath.Join(root, config.Config.WorkingDir)
	write(t, filepath.Join(data, "mlp.onnx"), read(t, filepath.Join("..", "fixtures", "mlp.onnx")), 0o644)
	run := func(args ...string) string {
		args = append([]string{"--userspec=" + config.Config.User, "--groups=", root, "/usr/bin/mcompress"}, args...)
		c := exec.Command("chroot", args...)
		c.Env = config.Config.Env
		return output(t, c)
	}
	if got := run("version"); !strings.Contains(got, tag) {
		t.Errorf("version: %q", got)
	}
	if got := run("quantize", "--quiet", config.Config.WorkingDir+"/mlp.onnx"); !strings.Contains(got, "138 KiB") {
		t.Errorf("quantize: %q", got)
	}
	info, err := os.Stat(filepath.Join(data, "mlp.dynamic-int8.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != nonroot {
		t.Errorf("the owner of the result is %d", owner)
	}
}

// The program in the image trusts the certificates of the image, as push and pull need.
func TestImageTrustsItsCertificates(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		missing(t, "chroot is for root on Linux")
	}
	root, config := unpackedImage(t).rootFS(t)
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer server.Close()
	pull := func() string {
		c := exec.Command("chroot", "--userspec="+config.Config.User, root, "/usr/bin/mcompress", "pull", "oci://"+server.Listener.Addr().String()+"/models/mlp:1")
		c.Env = config.Config.Env
		out, err := c.CombinedOutput()
		if err == nil {
			t.Errorf("a model was pulled from an empty server")
		}
		return string(out)
	}
	if got := pull(); !strings.Contains(got, "certificate signed by unknown authority") {
		t.Errorf("with an unknown certificate: %s", got)
	}
	roots := filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt")
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write(t, roots, append(read(t, roots), own...), 0o644)
	if got := pull(); strings.Contains(got, "certificate") {
		t.Errorf("with a certificate that the image has: %s", got)
	}
}
