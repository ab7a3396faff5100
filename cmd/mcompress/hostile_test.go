package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// hostileCommands are commands whose next argument is a model; OUT is a path of an output.
var hostileCommands = []string{
	"inspect", "inspect --values", "inspect --text", "inspect --by module", "inspect --json",
	"memory", "memory --layout", "memory --training", "memory --split 2", "split --output OUT",
	"quantize -o OUT", "quantize --method static-int8 -o OUT", "quantize --method weight-int4 -o OUT",
	"quantize --method float16 -o OUT",
	"prune -o OUT", "prune --method lowrank -o OUT", "prune --method channel -o OUT", "sparse -o OUT",
	"quantize --dry-run",
	"verify --backend embedded MODEL", "report --report none MODEL",
}

// Each command either succeeds or ends with one line that names the file, and writes no control characters. Each model
// runs a third of the commands, another one than the models next to it, or all of them by make test-exhaustive.
func TestHostileModels(t *testing.T) {
	models := hostileFiles(t, "*.onnx")
	for i, model := range models {
		for _, command := range conform.Part(i, 3, hostileCommands) {
			t.Run(filepath.Base(model)+" "+command, func(t *testing.T) { runHostile(t, command, model) })
		}
	}
}

// hostileFiles are the shared hostile files of a pattern.
func hostileFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(conform.Shared(t), "hostile", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no hostile files %s: %v", pattern, err)
	}
	return files
}

// Recipes that are no list of steps end with one line that names the file and the position; a byte order mark is
// accepted. No command writes anything.
func TestHostileRecipes(t *testing.T) {
	model := filepath.Join(filepath.Dir(conform.Fixtures(t)[0]), "mlp.onnx")
	for _, recipe := range hostileFiles(t, "*.yaml") {
		t.Run(filepath.Base(recipe), func(t *testing.T) {
			dir := t.TempDir()
			code, _, stderr := call("apply", recipe, model, "-o", filepath.Join(dir, "out.onnx"),
				"--dry-run", "--quiet")
			want := exitUsage
			if filepath.Base(recipe) == "y_bom.yaml" {
				want = exitDone
			}
			if code != want || code != exitDone &&
				(strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, recipe+": ")) {
				t.Errorf("exit code %d, want %d: %s", code, want, excerpt.FindString(stderr))
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
}

func runHostile(t *testing.T, command, model string) {
	args := []string{"mcompress"}
	for _, word := range strings.Fields(command) {
		switch word {
		case "OUT":
			word = filepath.Join(t.TempDir(), "out.onnx")
		case "MODEL":
			word = model
		}
		args = append(args, word)
	}
	if strings.HasPrefix(filepath.Base(model), "loop_grow") {
		// it ends where the memory of a run ends, which takes seconds for that of the machine
		args = append(args, "--memory-limit", "512MiB")
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), append(args, "--quiet", model), &stdout, &stderr)
	text := stderr.String()
	if strings.Contains(text, "internal error") || code != exitDone && code != exitGate && code != exitInput {
		t.Errorf("exit code %d: %s", code, text)
	}
	if code == exitInput && (strings.Count(text, "\n") != 1 || !strings.Contains(text, model)) {
		t.Errorf("not one line that names the file: %s", text)
	}
	for _, out := range []string{stdout.String(), text} {
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }); i >= 0 {
			t.Errorf("a control character at %d: %q", i, excerpt.FindString(out[i:]))
		}
	}
}

// excerpt is the start of a text.
var excerpt = regexp.MustCompile(`(?s)^.{1,40}`)
