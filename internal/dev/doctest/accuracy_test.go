package doctest

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/report"
)

// trial matches a row of the README's table: model, command, file, accuracy.
var trial = regexp.MustCompile("(?m)^\\| `(\\w+\\.onnx)` \\| `(mcompress [^`]+)` \\|([^|]*)\\|([^|]*)\\|$")

// tolerance is the allowed difference of accuracies: CPUs round differently.
const tolerance = 0.011

// TestAccuraciesAreMeasured compares the table of sizes and accuracies with ONNX Runtime.
func TestAccuraciesAreMeasured(t *testing.T) {
	w := conform.Start(t)
	path := filepath.Join(root(t), "README.md")
	was := read(t, path)
	dir := checkout(t)
	sh := newShell(t, dir)
	is := trial.ReplaceAllStringFunc(was, func(row string) string {
		m := trial.FindStringSubmatch(row)
		file, accuracy := try(t, w, sh, m[2], filepath.Join("fixtures", m[1]))
		if near(m[4], accuracy) {
			accuracy = strings.TrimSpace(m[4])
		}
		return fmt.Sprintf("| `%s` | `%s` | %s | %s |", m[1], m[2], file, accuracy)
	})
	if len(trial.FindAllString(was, -1)) < 4 {
		t.Error("README.md has no table of accuracies")
	}
	settle(t, path, was, is)
}

// try compresses a model and returns file sizes and accuracies in the format of the table.
func try(t *testing.T, w *conform.Worker, sh *shell, command, model string) (file, accuracy string) {
	t.Helper()
	out, code := sh.run(t, command+" --quiet --json --report none -o out.onnx "+model)
	if code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s", command, model, code, out)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	result := filepath.Join(sh.dir, "out.onnx")
	defer os.Remove(result)
	b := r.Totals.FileBytes
	return size(b.Before) + " → " + size(b.After), score(t, w, sh, model) + " → " + score(t, w, sh, "out.onnx")
}

func size(n int64) string { return humanize.IBytes(uint64(n)) }

func score(t *testing.T, w *conform.Worker, sh *shell, model string) string {
	t.Helper()
	a, err := w.Accuracy(filepath.Join(sh.dir, model), filepath.Join(sh.dir, "fixtures", "digits_test.npz"), "labels",
		conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%.3f", a)
}

// near reports whether two cells of accuracies differ by rounding only.
func near(written, measured string) bool {
	a, b := strings.Split(written, "→"), strings.Split(measured, "→")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, errX := strconv.ParseFloat(strings.TrimSpace(a[i]), 64)
		y, errY := strconv.ParseFloat(strings.TrimSpace(b[i]), 64)
		if errX != nil || errY != nil || math.Abs(x-y) > tolerance {
			return false
		}
	}
	return true
}
