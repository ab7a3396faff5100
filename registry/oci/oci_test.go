package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

// layersOf are the files of complete in the model's manifest, referrersOf those that refer to it.
const (
	layersOf = "model:external.onnx data:external_a.bin data:external_b.bin config:config.json config:tokenizer.json " +
		"report-md:external.report.md card:external.card.md"
	referrersOf = "report-json:external.report.json bom:external.cdx.json provenance:external.intoto.json signature:external.sig"
)

func TestOCIOfACompleteModel(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a, ref := registrytest.Complete(t), s.ref(t, "models/external:1")
		if err := registry.Check(t.Context(), ref, registrytest.Quick); err != nil {
			t.Fatal(err)
		}
		p, err := registry.Push(t.Context(), ref, a, registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		if got := registrytest.Names(p.Files); got != layersOf+" "+referrersOf || p.Uploaded != p.Size {
			t.Errorf("pushed %s, %d of %d bytes", got, p.Uploaded, p.Size)
		}
		for _, name := range []registry.Reference{ref, p.Digest} {
			l, err := registry.List(t.Context(), name, registrytest.Quick)
			if err != nil {
				t.Fatal(err)
			}
			if l.Digest != p.Digest || (&registry.Artifact{Files: l.Files}).Size() != p.Size ||
				!strings.HasPrefix(registrytest.Names(l.Files), layersOf+" ") || len(l.Files) != len(p.Files) {
				t.Errorf("listed %s, %s", l.Digest, registrytest.Names(l.Files))
			}
			report, _ := l.Find(registry.ReportJSON)
			want, _ := a.Find(registry.ReportJSON)
			if text, err := l.Read(t.Context(), report, 1<<20); err != nil || string(text) != registrytest.Read(t, want.Path) {
				t.Errorf("report: %s, %v", text, err)
			}
			if _, err := l.Read(t.Context(), report, 10); err == nil {
				t.Error("a file above the limit was read")
			}
			dir := t.TempDir()
			got, err := l.Pull(t.Context(), dir, registrytest.Quick)
			if err != nil || got.Downloaded != p.Size {
				t.Fatalf("%+v, %v", got, err)
			}
			for _, f := range p.Files {
				if registrytest.Read(t, filepath.Join(dir, f.Name)) != registrytest.Read(t, f.Path) {
					t.Errorf("%s differs", f.Name)
				}
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(p.Files) {
				t.Errorf("the folder has %v, %v", entries, err)
			}
		}
	})
}

// Manifests are those of ModelPack; the type of a referrer is also that of its config.
func TestOCIManifests(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a := registrytest.Complete(t)
		p, err := registry.Push(t.Context(), s.ref(t, "models/external:1"), a, registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		_, text := s.get(t, "/v2/models/external/manifests/1")
		m := object(t, text)
		config := m["config"].(map[string]any)
		if "sha256:"+registrytest.Sum(text) != p.Digest.Digest || m["artifactType"] != mediaManifest ||
			config["mediaType"] != mediaConfig {
			t.Errorf("manifest: %s", text)
		}
		for i, l := range m["layers"].([]any) {
			l := l.(map[string]any)
			if f := p.Files[i]; l["digest"] != "sha256:"+f.SHA256 ||
				l["annotations"].(map[string]any)["org.cncf.model.filepath"] != f.Name {
				t.Errorf("layer of %s: %v", f.Name, l)
			}
		}
		if _, text := s.get(t, fmt.Sprint("/v2/models/external/blobs/", config["digest"])); !strings.Contains(string(text),
			`"config":{"format":"onnx","precision":"int8","quantization":"l1, weight-int8"}`) {
			t.Errorf("config: %s", text)
		}
		status, index := s.get(t, "/v2/models/external/referrers/"+p.Digest.Digest)
		if status == http.StatusNotFound {
			_, index = s.get(t, "/v2/models/external/manifests/"+strings.Replace(p.Digest.Digest, ":", "-", 1))
		}
		types := map[string]bool{}
		for _, d := range object(t, index)["manifests"].([]any) {
			_, text := s.get(t, fmt.Sprint("/v2/models/external/manifests/", d.(map[string]any)["digest"]))
			r := object(t, text)
			if r["subject"].(map[string]any)["digest"] != p.Digest.Digest {
				t.Errorf("subject: %s", text)
			}
			types[r["config"].(map[string]any)["mediaType"].(string)] = true
		}
		if len(types) != 4 || !types[mediaStatement] || !types[mediaReport] || !types[mediaBOM] || !types[mediaSignature] {
			t.Errorf("referrers: %s", index)
		}
	})
}

func TestOCISecondPushUploadsNothing(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a, ref := registrytest.Complete(t), s.ref(t, "models/external:1")
		first, err := registry.Push(t.Context(), ref, a, registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		s.set(nil, nil)
		second, err := registry.Push(t.Context(), ref, a, registrytest.Quick)
		if err != nil || second.Uploaded != 0 || second.Digest != first.Digest {
			t.Fatalf("%+v, %v", second, err)
		}
		for _, method := range []string{"POST", "PATCH", "PUT"} {
			if n := s.count(method); n > 0 {
				t.Errorf("%d requests with %s: %v", n, method, s.requests)
			}
		}
		other := s.ref(t, "models/external:2")
		if p, err := registry.Push(t.Context(), other, a, registrytest.Quick); err != nil || p.Uploaded != 0 ||
			p.Digest != first.Digest {
			t.Errorf("another tag: %+v, %v", p, err)
		}
	})
}

// A file that another repository has is mounted.
func TestOCIMount(t *testing.T) {
	s := distribution(t) // ggcr's registry has one set of blobs for all repositories
	a := registrytest.Complete(t)
	if _, err := registry.Push(t.Context(), s.ref(t, "source/model:1"), a, registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	o := registrytest.Quick
	o.MountFrom = []string{"source/none", "source/model"}
	s.set(nil, nil)
	p, err := registry.Push(t.Context(), s.ref(t, "result/model:1"), a, o)
	if err != nil {
		t.Fatal(err)
	}
	weights := int64(0)
	for _, f := range p.Files {
		if f.Role == registry.Model || f.Role == registry.Data {
			weights += f.Size
		}
	}
	if p.Uploaded != p.Size-weights {
		t.Errorf("%d of %d bytes uploaded; weights have %d", p.Uploaded, p.Size, weights)
	}
	if l, err := registry.List(t.Context(), p.Digest, registrytest.Quick); err != nil || len(l.Files) != len(p.Files) {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestOCITagOfOtherContent(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		ref := s.ref(t, "models/m:1")
		first, err := registry.Push(t.Context(), ref, registrytest.Fixture(t, "mlp"), registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		s.set(nil, nil)
		_, err = registry.Push(t.Context(), ref, registrytest.Complete(t), registrytest.Quick)
		var conflict *registry.ConflictError
		if !errors.As(err, &conflict) || conflict.There != first.Digest.Digest || s.count("POST") > 0 {
			t.Fatalf("got %v after %v", err, s.requests)
		}
		o := registrytest.Quick
		o.Overwrite = true
		second, err := registry.Push(t.Context(), ref, registrytest.Complete(t), o)
		if err != nil {
			t.Fatal(err)
		}
		if l, err := registry.List(t.Context(), ref, registrytest.Quick); err != nil || l.Digest != second.Digest {
			t.Errorf("%v, %v", l, err)
		}
		if l, err := registry.List(t.Context(), first.Digest, registrytest.Quick); err != nil || l.Digest != first.Digest {
			t.Errorf("the replaced content: %v, %v", l, err)
		}
	})
}

func TestOCIMove(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		p, err := registry.Push(t.Context(), s.ref(t, "models/m:1"), registrytest.Fixture(t, "mlp"), registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []registry.Reference{p.Reference, p.Digest} {
			moved, err := registry.Move(t.Context(), from, "champion", registrytest.Quick)
			if err != nil || moved != s.ref(t, "models/m:champion") {
				t.Fatalf("%v, %v", moved, err)
			}
			if l, err := registry.List(t.Context(), moved, registrytest.Quick); err != nil || l.Digest != p.Digest {
				t.Errorf("%v, %v", l, err)
			}
		}
		if _, err := registry.Move(t.Context(), p.Reference, "a b",
			registrytest.Quick); !registrytest.IsA[*registry.ReferenceError](err) {
			t.Errorf("got %v", err)
		}
	})
}

// A push that ends at any request leaves no tag, and the next push completes it.
func TestOCIInterruptedPush(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a := registrytest.Complete(t)
		o := registrytest.Quick
		o.Parallel = 1 // the order of requests is fixed
		step := 1
		if strings.HasSuffix(t.Name(), "distribution") { // each request syncs files
			a.Files = slices.DeleteFunc(a.Files, func(f registry.File) bool {
				return f.Role != registry.Model && f.Role != registry.ReportJSON
			})
			step = 3
		}
		for last := 1; ; last += step {
			ref := s.ref(t, fmt.Sprintf("models/m%d:1", last))
			ctx, cancel := context.WithCancel(t.Context())
			var n atomic.Int64
			s.set(func(w http.ResponseWriter, r *http.Request) bool {
				if n.Add(1) == int64(last) {
					cancel()
				}
				return ctx.Err() != nil
			}, nil)
			_, err := registry.Push(ctx, ref, a, o)
			s.set(nil, nil)
			if err == nil {
				cancel()
				if last < 10 {
					t.Fatalf("a push of %d requests", last)
				}
				return
			}
			if status, _ := s.get(t, "/v2/"+ref.Name+"/manifests/1"); status != http.StatusNotFound {
				t.Fatalf("tagged after request %d", last)
			}
			p, err := registry.Push(t.Context(), ref, a, o)
			if err != nil {
				t.Fatal(err)
			}
			if l, err := registry.List(t.Context(), ref, o); err != nil || len(l.Files) != len(p.Files) || l.Digest != p.Digest {
				t.Fatalf("after request %d: %v, %v", last, l, err)
			}
			cancel()
		}
	})
}

// The Python client of ORAS pulls a pushed artifact.
func TestOCIOfORAS(t *testing.T) {
	w := conform.Start(t)
	eachServer(t, func(t *testing.T, s *server) {
		p, err := registry.Push(t.Context(), s.ref(t, "models/external:1"), registrytest.Complete(t), registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		paths, err := w.PullORAS(s.host+"/models/external:1", dir)
		if err != nil || len(paths) != len(strings.Fields(layersOf)) {
			t.Fatalf("%v, %v", paths, err)
		}
		for _, f := range p.Files[:len(paths)] {
			if registrytest.Read(t, filepath.Join(dir, f.Name)) != registrytest.Read(t, f.Path) {
				t.Errorf("%s differs", f.Name)
			}
		}
	})
}
