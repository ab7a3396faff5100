package doctest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// TestPreCommitHook runs pre-commit with the hook of the repository in a new one, as its users do: it passes models and
// pointers of Git LFS with reports that match, and fails for others.
func TestPreCommitHook(t *testing.T) {
	program := filepath.Join(filepath.Dir(conform.Python(t)), "pre-commit")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; make test installs it", err)
	}
	dir := t.TempDir()
	sh := newShell(t, dir)
	for _, name := range []string{"mlp.onnx", "cnn.onnx"} {
		copyFixture(t, filepath.Join(root(t), "fixtures"), filepath.Join(root(t), "fixtures", name), dir)
	}
	script := func(want int, text, script string) {
		t.Helper()
		out, code := sh.run(t, script)
		if code != want || !strings.Contains(out, text) {
			t.Fatalf("%s: exit code %d, want %d and %q\n%s", script, code, want, text, out)
		}
	}
	script(0, "", `
		export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.example
		git init -q hooks && cp "`+filepath.Join(root(t), ".pre-commit-hooks.yaml")+
		`" hooks && git -C hooks add -A && git -C hooks commit -q -m hooks
		git init -q project && cp mlp.onnx project && cd project
		mcompress quantize mlp.onnx --report json --quiet
		printf 'repos:\n- repo: %s\n  rev: %s\n  hooks: [{id: mcompress-verify-report-system}]\n' "$PWD/../hooks" $(git -C ../hooks rev-parse HEAD) > .pre-commit-config.yaml
		git add -A`)
	run := `cd project && git add -A && PRE_COMMIT_HOME=$PWD/../cache ` + program + ` run --all-files`
	script(0, "Passed", run)
	script(0, "", `cd project && f=mlp.dynamic-int8.onnx && printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' $(sha256sum $f | cut -d' ' -f1) $(stat -c %s $f) > pointer && mv pointer $f`)
	script(0, "Passed", run)
	script(0, "", `cd project && printf 'gates: {min-ratio: 10}\n' > mcompress.yaml`)
	script(1, "gate min-ratio did not hold", run)
	script(0, "", `cd project && rm mcompress.yaml && cp ../cnn.onnx .`)
	script(1, "mismatch: cnn.onnx: no report names it", run)
	script(0, "", `cd project && cp cnn.onnx mlp.dynamic-int8.onnx`)
	script(1, "mismatch: mlp.dynamic-int8.onnx: the SHA-256 is", run)
}
