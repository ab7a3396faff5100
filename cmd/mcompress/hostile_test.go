package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// hostileModels are patterns of small files that ended or misled a release. loop_grow fills the memory limit first; the engine's tests have
// such loops.
var hostileModels = []string{"constantofshape_*", "cycle_*", "dims_*", "functions_*", "loop_endless*", "lowrank_*", "no_outputs*", "sparse_*", "string_*", "terminal_*"}

// hostileCommands are commands whose next argument is a model; OUT is a path of an output.
var hostileCommands = []string{
	"inspect", "inspect --values", "inspect --text", "inspect --by module", "inspect --json",
	"memory", "memory --layout", "memory --training", "memory --split 2", "split --output OUT",
	"quantize -o OUT", "quantize --method static-int8 -o OUT", "quantize --method weight-int4 -o OUT", "quantize --method float16 -o OUT",
	"prune -o OUT", "prune --method lowrank -o OUT", "prune --method channel -o OUT", "sparse -o OUT", "quantize --dry-run",
	"verify --backend embedded MODEL", "report --report none MODEL",
}

// Each command either succeeds or ends with one line that names the file, and writes no control characters.
func TestHostileModels(t *testing.T) {
	var models []string
	for _, pattern := range hostileModels {
		found, err := filepath.Glob(filepath.Join(conform.Shared(t), "hostile", pattern+".onnx"))
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, found...)
	}
	for _, model := range models {
		for _, command := range hostileCommands {
			t.Run(filepath.Base(model)+" "+command, func(t *testing.T) { runHostile(t, command, model) })
		}
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
