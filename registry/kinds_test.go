package registry

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A kind is a kind of registry in tests: an artifact that it takes, and a new empty place for it.
type kind struct {
	artifact func(t *testing.T) *Artifact
	place    func(t *testing.T) Reference
	changes  bool // the files that are stored are made from those of the artifact
}

// kinds has a row for each backend.
var kinds = map[string]kind{
	schemeOCI:    {artifact: complete, place: func(t *testing.T) Reference { return withReferrers(t).ref(t, "models/m:1") }},
	schemeMLflow: {artifact: complete, place: func(t *testing.T) Reference { return newTracking(t).ref(t, "m@one") }},
	schemeHub: {
		artifact: func(t *testing.T) *Artifact { return compressed(t, "mlp.onnx", "small.onnx") },
		place:    func(t *testing.T) Reference { return parse(t, "hf:"+filepath.Join(t.TempDir(), "repository")) },
		changes:  true, // the model has another name, and reports name it
	},
	schemeDir: {artifact: complete, place: func(t *testing.T) Reference { return parse(t, "dir:"+filepath.Join(t.TempDir(), "models")) }},
}

// Each backend has a row here, and what is pushed to its registry is listed, pulled and promoted; a second push uploads
// nothing.
func TestEachKind(t *testing.T) {
	for _, scheme := range slices.Sorted(maps.Keys(backends)) {
		t.Run(scheme, func(t *testing.T) {
			k, ok := kinds[scheme]
			if !ok {
				t.Fatalf("%s has no row in kinds", scheme)
			}
			k.test(t, scheme)
		})
	}
}

func (k kind) test(t *testing.T, scheme string) {
	ctx, a, ref := t.Context(), k.artifact(t), k.place(t)
	if again := parse(t, ref.String()); ref.Scheme != scheme || again != ref || !IsReference(ref.String()) {
		t.Fatalf("%s is parsed as %+v", ref, again)
	}
	if _, err := List(ctx, ref, quick); err == nil {
		t.Error("what was not pushed is listed")
	}
	if err := Check(ctx, ref, quick); err != nil {
		t.Fatal(err)
	}
	first, err := Push(ctx, ref, a, quick)
	if err != nil || first.Uploaded == 0 || first.Uploaded != first.Size {
		t.Fatalf("%+v, %v", first, err)
	}
	if second, err := Push(ctx, ref, a, quick); err != nil || second.Uploaded != 0 || second.Digest != first.Digest {
		t.Errorf("the second push: %+v, %v", second, err)
	}
	k.pull(t, ref, a)
	k.pull(t, first.Digest, a) // under the registry's own name
	promoted, err := Move(ctx, ref, "champion", quick)
	if backends[scheme].move == nil {
		var refused *ReferenceError
		if !errors.As(err, &refused) {
			t.Errorf("a registry without tags: %v", err)
		}
		return
	}
	if err != nil || promoted.Tag != "champion" {
		t.Fatalf("%s: %v", promoted, err)
	}
	k.pull(t, promoted, a)
}

// pull lists and pulls what ref names: the files of the artifact but for documents with times, which are not pushed.
func (k kind) pull(t *testing.T, ref Reference, a *Artifact) {
	t.Helper()
	l, err := List(t.Context(), ref, quick)
	if err != nil {
		t.Fatalf("%s: %v", ref, err)
	}
	dir := filepath.Join(t.TempDir(), "pulled")
	p, err := l.Pull(t.Context(), dir, quick)
	if err != nil || p.Size == 0 {
		t.Fatalf("%s: %+v, %v", ref, p, err)
	}
	for _, f := range p.Files {
		if sum([]byte(read(t, filepath.Join(dir, filepath.FromSlash(f.Name))))) != f.SHA256 {
			t.Errorf("%s: %s has another digest than is listed", ref, f.Name)
		}
	}
	model, _ := l.Find(Model)
	original, err := a.Model()
	if err != nil || model.SHA256 != original.SHA256 {
		t.Errorf("%s: the model is %+v, %v", ref, model, err)
	}
	if k.changes {
		return
	}
	byName := func(x, y File) int { return cmp.Compare(x.Name, y.Name) }
	pushed := slices.DeleteFunc(slices.Clone(a.Files), func(f File) bool { return f.Role == ReportPage })
	slices.SortFunc(pushed, byName)
	slices.SortFunc(l.Files, byName)
	for i, f := range pushed {
		if i >= len(l.Files) || l.Files[i].Name != f.Name || l.Files[i].SHA256 != f.SHA256 {
			t.Fatalf("%s: files %v, pushed are %v", ref, l.Files, pushed)
		}
	}
}

// Each kind is in the guide, in the help of push and pull, and in the error for what is no reference.
func TestEachKindIsDocumented(t *testing.T) {
	_, err := Parse("model.onnx")
	for _, c := range []struct{ where, text, before string }{
		{"the table of docs/guide/registry.md", read(t, filepath.Join("..", "docs", "guide", "registry.md")), "\n| `"},
		{"mcompress push --help", read(t, filepath.Join("..", "cmd", "mcompress", "testdata", "help", "push.txt")), "\n  "},
		{"mcompress pull --help", read(t, filepath.Join("..", "cmd", "mcompress", "testdata", "help", "pull.txt")), "\n  "},
		{"the error of Parse", err.Error(), " "},
	} {
		for scheme := range backends {
			if !strings.Contains(c.text, c.before+scheme+":") {
				t.Errorf("%s has no %s:", c.where, scheme)
			}
		}
	}
}
