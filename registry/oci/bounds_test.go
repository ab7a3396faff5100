package oci

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/registry/internal/transfer"
)

// Whichever request of a push, a list or a move is refused, it is an error, and no tag names what is not complete.
func TestEachRefusedRequestOfOCI(t *testing.T) {
	a := registrytest.Complete(t)
	o := registrytest.Quick
	o.Parallel = 1
	calls := func(s *server) map[string]func() error {
		ref := s.ref(t, "models/m:1")
		return map[string]func() error{
			"push":  func() error { _, err := registry.Push(t.Context(), ref, a, o); return err },
			"check": func() error { return registry.Check(t.Context(), ref, o) },
			"list":  func() error { _, err := registry.List(t.Context(), ref, o); return err },
			"move":  func() error { _, err := registry.Move(t.Context(), ref, "2", o); return err },
		}
	}
	// attempt runs a call on a new server that refuses one request, from 1, and returns that, and the number of all.
	attempt := func(call string, at int) (s *server, refused string, count int, err error) {
		s = withReferrers(t)
		if call != "push" {
			if err := calls(s)["push"](); err != nil {
				t.Fatal(err)
			}
		}
		s.set(func(w http.ResponseWriter, r *http.Request) bool {
			if count++; count != at {
				return false
			}
			refused = r.Method + " " + r.URL.Path
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"errors": [{"code": "DENIED", "message": "because"}]}`)
			return true
		}, nil)
		err = calls(s)[call]()
		s.set(nil, nil)
		return s, refused, count, err
	}
	for call := range calls(withReferrers(t)) {
		_, _, count, err := attempt(call, 0)
		if err != nil || count == 0 {
			t.Fatal(call, count, err)
		}
		for at := 1; at <= count; at++ {
			s, refused, _, err := attempt(call, at)
			if err == nil && !strings.HasPrefix(refused, "DELETE") { // an upload that is not cancelled is dropped later
				t.Errorf("%s: request %d, %s, is refused, and that is no error", call, at, refused)
			}
			if err != nil && (!registrytest.IsA[*registry.TransferError](err) ||
				!strings.Contains(err.Error(), s.host+" denies access")) {
				t.Errorf("%s: request %d, %s: %v", call, at, refused, err)
			}
			if status, _ := s.get(t, "/v2/models/m/manifests/1"); call == "push" && err != nil && status != http.StatusNotFound {
				t.Errorf("request %d, %s, is refused, and there is a tag", at, refused)
			}
		}
	}
}

// A refusal has the words of the registry, or at least the code.
func TestWordsOfRefusals(t *testing.T) {
	r := &repository{ref: registry.Reference{Scheme: scheme, Host: "h", Name: "m", Tag: "1"}}
	for _, c := range []struct {
		status int
		errors errcode.Errors
		want   string
	}{
		{http.StatusUnauthorized, errcode.Errors{{Code: "UNAUTHORIZED", Message: "who?"}},
			"h refuses the credentials, or requires some: docker login h"},
		{http.StatusForbidden, errcode.Errors{{Code: "DENIED", Message: "because"}, {Code: "OTHER"}},
			"h denies access: because"},
		{http.StatusForbidden, nil, "h denies access"},
		{http.StatusMethodNotAllowed, errcode.Errors{{Code: "UNSUPPORTED"}}, "the registry is read-only: UNSUPPORTED"},
		{http.StatusTeapot, nil, "the registry responds with status 418"},
		{http.StatusBadRequest, errcode.Errors{{Code: "TAG_INVALID", Message: "no such form"}},
			"the registry responds with status 400: no such form"},
	} {
		if got := r.status(&errcode.ErrorResponse{StatusCode: c.status, Errors: c.errors}).Error(); got != c.want {
			t.Errorf("status %d: got %q, want %q", c.status, got, c.want)
		}
	}
}

// A response to a range has the bytes of that range, or all of the file.
func TestRangesOfOCI(t *testing.T) {
	s := withReferrers(t)
	l := pushed(t, s, registrytest.Fixture(t, "mlp"))
	r, err := open(l.Reference, registrytest.Quick)
	if err != nil {
		t.Fatal(err)
	}
	f := l.Files[1]
	whole := registrytest.Read(t, registrytest.Fixture(t, "mlp").Files[1].Path)
	respond := func(status int, header map[string]string, body string) {
		s.set(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, f.SHA256) || r.Header.Get("Range") == "" {
				return false
			}
			for name, value := range header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}, nil)
	}
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		at     int64
		want   string // empty for an error
	}{
		"range": {http.StatusPartialContent,
			map[string]string{"Content-Range": fmt.Sprintf("bytes 2-%d/%d", f.Size-1, f.Size)}, whole[2:], 2, whole[2:]},
		"whole":       {http.StatusOK, nil, whole, 0, whole},
		"not a range": {http.StatusRequestedRangeNotSatisfiable, nil, "", 0, whole},
		"other range": {http.StatusPartialContent,
			map[string]string{"Content-Range": fmt.Sprintf("bytes 3-%d/%d", f.Size-1, f.Size)}, whole[3:], 0, ""},
		"no range":      {http.StatusPartialContent, nil, whole[2:], 0, ""},
		"shorter range": {http.StatusPartialContent, map[string]string{"Content-Range": "bytes 2-3/9"}, whole[2:4], 0, ""},
		"shorter":       {http.StatusOK, nil, whole[1:], 0, ""},
		"refused":       {http.StatusForbidden, nil, "", 0, ""},
	} {
		respond(c.status, c.header, c.body)
		content, at, err := r.fetch(t.Context(), f, 2)
		if (err == nil) != (c.want != "") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		text, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil || string(text) != c.want || at != c.at {
			t.Errorf("%s: %q from %d, %v", name, text, at, err)
		}
	}
}

// An interrupted upload continues after the bytes that the registry says it has, if the file has more, and begins anew
// otherwise.
func TestInterruptedUploads(t *testing.T) {
	const size = 100
	for name, c := range map[string]struct {
		status           int
		header           string
		location         string
		before           int64
		sent, done       int64 // afterwards: of the upload, and shown
		anew, progressed bool
	}{
		"part":      {http.StatusNoContent, "0-41", "/next", 0, 42, 42, false, true},
		"as before": {http.StatusNoContent, "0-41", "/next", 42, 42, 42, false, false},
		"less":      {http.StatusNoContent, "0-41", "/next", size, 42, 42, false, false},
		"all":       {http.StatusNoContent, "0-99", "/next", 0, size, size, false, true},
		"two bytes": {http.StatusNoContent, "0-1", "/next", 0, 2, 2, false, true},
		"more":      {http.StatusNoContent, "0-100", "/next", 42, 0, 0, true, false},
		"nothing":   {http.StatusNoContent, "0-0", "/next", 42, 0, 0, true, false},
		"no range":  {http.StatusNoContent, "", "/next", 42, 0, 0, true, false},
		"elsewhere": {http.StatusNoContent, "0-41", "http://elsewhere/next", 42, 0, 0, true, false},
		"unknown":   {http.StatusNotFound, "0-41", "/next", 42, 0, 0, true, false},
	} {
		s := withReferrers(t)
		s.set(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Range", c.header)
			w.Header().Set("Location", c.location)
			w.WriteHeader(c.status)
			return true
		}, nil)
		r, err := open(s.ref(t, "models/m:1"), registrytest.Quick)
		if err != nil {
			t.Fatal(err)
		}
		shown := int64(0)
		meter := transfer.NewMeter(size, func(done, _ int64) { shown = done })
		u := &upload{repository: r, f: registry.File{Size: size}, meter: meter,
			at: &url.URL{Scheme: "http", Host: s.host, Path: "/here"}, sent: c.before}
		u.meter.Add(c.before)
		progressed := u.resume(t.Context())
		if u.sent != c.sent || shown != c.done || (u.at == nil) != c.anew || u.at != nil && u.at.Path != "/next" ||
			progressed != c.progressed {
			t.Errorf("%s: %d bytes are sent, %d shown, to %v, progress %t", name, u.sent, shown, u.at, progressed)
		}
		if u.at = nil; u.resume(t.Context()) || u.sent != 0 {
			t.Errorf("%s: an upload that has not begun has made progress", name)
		}
	}
}

// An upload continues on the same host by the same scheme, with the port of the request where the registry leaves it
// out.
func TestLocationsOfUploads(t *testing.T) {
	r := &repository{ref: registry.Reference{Scheme: scheme, Host: "h:5000", Name: "m", Tag: "1"}, protocol: "https"}
	for location, want := range map[string]string{
		"/v2/m/uploads/1": "https://h:5000/v2/m/uploads/1", "https://h:5000/x?y=z": "https://h:5000/x?y=z",
		"https://h/x": "https://h:5000/x", "http://h:5000/x": "", "https://other:5000/x": "", "": "",
	} {
		header := http.Header{}
		if location != "" {
			header.Set("Location", location)
		}
		at, err := r.location(&http.Response{Header: header,
			Request: &http.Request{URL: &url.URL{Scheme: "https", Host: "h:5000", Path: "/v2/m/blobs/uploads/"}}})
		if (err == nil) != (want != "") || err == nil && at.String() != want ||
			err != nil && !registrytest.IsA[*registry.TransferError](err) {
			t.Errorf("%s: %v, %v", location, at, err)
		}
	}
}

// Layers of other tools are files by their names and types; those that are not files are errors.
func TestLayersOfOtherTools(t *testing.T) {
	layer := func(name, mediaType string) ocispec.Descriptor {
		return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromString(name), Size: 5,
			Annotations: map[string]string{ocispec.AnnotationTitle: name}}
	}
	files, err := modelFiles(ocispec.Manifest{Layers: []ocispec.Descriptor{
		layer("README.md", mediaDoc), layer("a.onnx", mediaWeight), layer("b.onnx", mediaWeight),
		layer("a.report.md", mediaDoc), layer("a.card.md", mediaDoc), layer("a.sig", mediaDoc),
		layer("doc/README.md", mediaDoc), layer("notes", mediaDoc),
		layer("config.json", mediaSettings), layer("x", "text/plain"),
	}})
	if want := "card:README.md model:a.onnx data:b.onnx report-md:a.report.md card:a.card.md other:a.sig " +
		"card:doc/README.md other:notes config:config.json other:x"; err != nil || registrytest.Names(files) != want {
		t.Errorf("got %s, %v", registrytest.Names(files), err)
	}
	for want, change := range map[string]func(d *ocispec.Descriptor){
		"":                        func(*ocispec.Descriptor) {},
		"is not a SHA-256 digest": func(d *ocispec.Descriptor) { d.Digest = "sha256:abc" },
		"is not a SHA-256":        func(d *ocispec.Descriptor) { d.Digest = digest.SHA512.FromString("x") },
		"size -1":                 func(d *ocispec.Descriptor) { d.Size = -1 },
		"has no file name":        func(d *ocispec.Descriptor) { d.Annotations = nil },
		"archives and compressed": func(d *ocispec.Descriptor) { d.MediaType = "application/x.tar" },
		"archives and":            func(d *ocispec.Descriptor) { d.MediaType = "text/plain+gzip" },
		"archives":                func(d *ocispec.Descriptor) { d.MediaType = "text/plain+zstd" },
	} {
		d := layer("f", mediaWeight)
		change(&d)
		if f, err := layerFile(d); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) ||
			err == nil && (f.Name != "f" || f.Size != 5 || f.SHA256 != d.Digest.Encoded()) {
			t.Errorf("%+v: %+v, %v", d, f, err)
		}
	}
	d := layer("title", mediaWeight)
	d.Annotations[annotationPath], d.Size = "path", 0
	if f, err := layerFile(d); err != nil || f.Name != "path" {
		t.Errorf("%+v, %v", f, err)
	}
}

// Referrers of other kinds are left out, and manifests that are too large or no manifests are errors.
func TestOtherReferrersAndManifests(t *testing.T) {
	s := withReferrers(t)
	a := registrytest.Fixture(t, "mlp")
	l := pushed(t, s, a)
	r, err := open(l.Reference, registrytest.Quick)
	if err != nil {
		t.Fatal(err)
	}
	model, err := r.Resolve(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	x := descriptor(registry.File{Name: "x", Size: 1, SHA256: registrytest.Sum([]byte("x"))}, "text/plain")
	unnamed := x
	unnamed.Annotations = nil
	s.put(t, "models/m", "", "", []byte("x"))
	s.put(t, "models/m", "", "", []byte("{}"))
	refer := func(artifactType string, layers ...ocispec.Descriptor) {
		m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
			ArtifactType: artifactType, Subject: &model, Layers: layers}
		m.Config = ocispec.Descriptor{MediaType: artifactType, Digest: digest.FromString("{}"), Size: 2}
		b, err := jsonBlob(m.MediaType, m)
		if err != nil {
			t.Fatal(err)
		}
		s.put(t, "models/m", b.Digest.String(), b.MediaType, b.content)
	}
	refer("application/other", x)
	refer(mediaSignature, unnamed)
	refer(mediaSignature, x, x)
	if again, err := registry.List(t.Context(), l.Reference, registrytest.Quick); err != nil ||
		len(again.Files) != len(l.Files) {
		t.Errorf("%s, %v", registrytest.Names(again.Files), err)
	}
	refer(mediaSignature, x)
	if again, err := registry.List(t.Context(), l.Reference, registrytest.Quick); err != nil ||
		registrytest.Names(again.Files) != registrytest.Names(l.Files)+" signature:x" {
		t.Errorf("%s, %v", registrytest.Names(again.Files), err)
	}
	for size, want := range map[int]string{maxManifest + 1: "a manifest of", 100: "manifest: "} {
		text := []byte(`{"schemaVersion": 2, "mediaType": "` + ocispec.MediaTypeImageManifest + `", "config": ` +
			`5, "x": "` + strings.Repeat("x", size) + `"}`)
		s.set(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/manifests/1") {
				return false
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			if r.Method == http.MethodGet {
				_, _ = w.Write(text)
			}
			return true
		}, nil)
		if _, err := registry.List(t.Context(), l.Reference,
			registrytest.Quick); !registrytest.IsA[*registry.ContentError](err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %.200v", size, err)
		}
	}
	for in, want := range map[string]string{"a.sig a.sig": "a.sig a.012345678901.sig", "a A b": "a A.012345678901 b",
		"x": "x"} {
		var files []registry.File
		for _, name := range strings.Fields(in) {
			files = append(files, registry.File{Name: name, SHA256: "012345678901234"})
		}
		var got []string
		for _, f := range unique(files) {
			got = append(got, f.Name)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: got %s", in, text)
		}
	}
}

// The config of a model has the type of most of its bytes, and the methods if it is quantized.
func TestConfigOfAReport(t *testing.T) {
	for report, want := range map[string]string{
		`{"recipe": {"text": "steps:\n- method: a\n- method: b\n"}, "totals": {"dtypes": [{"dtype": "float", "bytes": {"after": 2}}, {"dtype": "int8", "bytes": {"after": 3}}, {"dtype": "x", "bytes": {"after": 3}}]}}`: "int8 a, b",
		`{"recipe": {"text": "steps:\n- method: a\n"}, "totals": {"dtypes": [{"dtype": "float", "bytes": {"after": 2}}, {"dtype": "int8", "bytes": {"before": 3}}]}}`:                                                    "float ",
		`{"totals": {"dtypes": []}}`: " ",
		`{"recipe": 5}`:              "error",
		`{"recipe": {"text": ": ]"}, "totals": {"dtypes": [{"dtype": "int8", "bytes": {"after": 3}}]}}`: "error",
		`none`: "error",
	} {
		path := filepath.Join(registrytest.Written(t, map[string]string{"m.report.json": report}), "m.report.json")
		var c modelConfig
		err := c.describe(&registry.Artifact{Files: []registry.File{{Name: "m.report.json", Path: path,
			Role: registry.ReportJSON}}})
		if want == "error" {
			if !registrytest.IsA[*registry.ContentError](err) {
				t.Errorf("%s: %v", report, err)
			}
		} else if got := c.Config.Precision + " " + c.Config.Quantization; err != nil || got != want {
			t.Errorf("%s: %q, %v", report, got, err)
		}
	}
	var c modelConfig
	if err := c.describe(&registry.Artifact{Files: []registry.File{{Path: filepath.Join(t.TempDir(), "none"),
		Role: registry.ReportJSON}}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the report: %v", err)
	}
	if err := (&packed{}).packModel(&registry.Artifact{Files: []registry.File{{Role: registry.Data}}}); err == nil {
		t.Error("an artifact without a model is packed")
	}
}

// A registry decides on the number of requests of a list by the files that are attached to a model: not without bound.
func TestAttachedFilesAreBounded(t *testing.T) {
	s := withReferrers(t)
	if _, err := registry.Push(t.Context(), s.ref(t, "models/m:1"), registrytest.Complete(t), registrytest.Quick); err != nil {
		t.Fatal(err)
	}
	answer := func(entries int, distinct, endless bool) {
		s.set(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/referrers/") {
				return false
			}
			list := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
			for i := range entries {
				n := 0
				if distinct {
					n = i
				}
				list.Manifests = append(list.Manifests, ocispec.Descriptor{
					MediaType: ocispec.MediaTypeImageManifest, ArtifactType: referrerTypes[registry.ReportJSON],
					Digest: digest.FromString(fmt.Sprint(n)), Size: 1,
				})
			}
			if endless {
				w.Header().Set("Link", "<"+r.URL.Path+`?page=x>; rel="next"`)
			}
			b, err := jsonBlob(list.MediaType, list)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", list.MediaType)
			_, _ = w.Write(b.content)
			return true
		}, nil)
	}
	for name, c := range map[string]struct {
		entries           int
		distinct, endless bool
		requests          int // at most
	}{
		"one many times": {2000, false, false, 10},
		"many":           {2000, true, false, maxReferrers + 10},
		"endless pages":  {0, false, true, maxReferrers + 10},
	} {
		answer(c.entries, c.distinct, c.endless)
		s.mu.Lock()
		before := len(s.requests)
		s.mu.Unlock()
		_, err := registry.List(t.Context(), s.ref(t, "models/m:1"), registrytest.Quick)
		s.mu.Lock()
		requests := len(s.requests) - before
		s.mu.Unlock()
		if err == nil || requests > c.requests {
			t.Errorf("%s: %d requests, %v", name, requests, err)
		}
	}
}
