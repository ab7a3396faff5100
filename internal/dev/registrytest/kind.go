package registrytest

import (
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/registry"
)

// A Kind is a kind of registry in tests: an artifact that it takes, and a new empty place for it.
type Kind struct {
	Scheme   string
	Artifact *registry.Artifact
	Place    registry.Reference
	Tags     bool // it has tags or aliases
	Changes  bool // the files that are stored are made from those of the artifact
}

// Test tests that what is pushed to the registry is listed, pulled and promoted; a second push uploads nothing.
func (k Kind) Test(t *testing.T) {
	ctx, a, ref := t.Context(), k.Artifact, k.Place
	if again := Parse(t, ref.String()); ref.Scheme != k.Scheme || again != ref || !registry.IsReference(ref.String()) {
		t.Fatalf("%s is parsed as %+v", ref, again)
	}
	if _, err := registry.List(ctx, ref, Quick); err == nil {
		t.Error("what was not pushed is listed")
	}
	if err := registry.Check(ctx, ref, Quick); err != nil {
		t.Fatal(err)
	}
	first, err := registry.Push(ctx, ref, a, Quick)
	if err != nil || first.Uploaded == 0 || first.Uploaded != first.Size {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := registry.Push(ctx, ref, a, Quick)
	if err != nil || second.Uploaded != 0 || second.Digest != first.Digest {
		t.Errorf("the second push: %+v, %v", second, err)
	}
	k.pull(t, ref, a)
	k.pull(t, first.Digest, a) // under the registry's own name
	promoted, err := registry.Move(ctx, ref, "champion", Quick)
	if !k.Tags {
		if !IsA[*registry.ReferenceError](err) {
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
func (k Kind) pull(t *testing.T, ref registry.Reference, a *registry.Artifact) {
	t.Helper()
	l, err := registry.List(t.Context(), ref, Quick)
	if err != nil {
		t.Fatalf("%s: %v", ref, err)
	}
	dir := filepath.Join(t.TempDir(), "pulled")
	p, err := l.Pull(t.Context(), dir, Quick)
	if err != nil || p.Size == 0 {
		t.Fatalf("%s: %+v, %v", ref, p, err)
	}
	for _, f := range p.Files {
		if Sum([]byte(Read(t, filepath.Join(dir, filepath.FromSlash(f.Name))))) != f.SHA256 {
			t.Errorf("%s: %s has another digest than is listed", ref, f.Name)
		}
	}
	model, _ := l.Find(registry.Model)
	original, err := a.Model()
	if err != nil || model.SHA256 != original.SHA256 {
		t.Errorf("%s: the model is %+v, %v", ref, model, err)
	}
	if k.Changes {
		return
	}
	byName := func(x, y registry.File) int { return cmp.Compare(x.Name, y.Name) }
	pushed := slices.DeleteFunc(slices.Clone(a.Files), func(f registry.File) bool {
		return f.Role == registry.ReportPage
	})
	slices.SortFunc(pushed, byName)
	slices.SortFunc(l.Files, byName)
	for i, f := range pushed {
		if i >= len(l.Files) || l.Files[i].Name != f.Name || l.Files[i].SHA256 != f.SHA256 {
			t.Fatalf("%s: files %v, pushed are %v", ref, l.Files, pushed)
		}
	}
}
