package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/report"
)

// A command with a memory budget is refused with the smallest budget that suffices, which it then keeps: the peak
// resident memory of the whole process, verification and report included, is within it.
func TestBudgetOfTheProcess(t *testing.T) {
	program, dir := ownProgram(t), filepath.Dir(conform.Fixtures(t)[0])
	data := filepath.Join(dir, "digits_train.npz")
	for _, args := range []string{
		"finetune --steps 3 --batch 256 " + filepath.Join(dir, "cnn.onnx"),
		"--workers 1 distill --steps 3 --batch 256 --optimizer sgd --student " + filepath.Join(dir, "mlp.onnx") +
			" --teacher " + filepath.Join(dir, "mlp.onnx"),
	} {
		out := filepath.Join(t.TempDir(), "out.onnx")
		run := func(budget string) (string, error) {
			text, err := exec.CommandContext(t.Context(), program,
				append(strings.Fields(args), "--data", data, "--memory-budget", budget, "-o", out)...).CombinedOutput()
			return string(text), err
		}
		text, err := run("1MiB")
		var exited *exec.ExitError
		smallest := regexp.MustCompile(`use --memory-budget ([0-9]+)MiB`).FindStringSubmatch(text)
		if !errors.As(err, &exited) || exited.ExitCode() != exitInput || smallest == nil {
			t.Fatalf("%s: %v: %s", args, err, text)
		}
		if text, err := run(smallest[1] + "MiB"); err != nil {
			t.Fatalf("%s: %v: %s", args, err, text)
		}
		var e report.Environment
		written, err := os.ReadFile(strings.TrimSuffix(out, ".onnx") + ".environment.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(written, &e); err != nil {
			t.Fatal(err)
		}
		n, _ := strconv.ParseInt(smallest[1], 10, 64)
		if budget := n << 20; e.PeakResident == 0 || e.PeakResident > budget+max(budget/50, 4<<20) {
			t.Errorf("%s: %d bytes resident, the budget is %d", args, e.PeakResident, budget)
		}
		t.Logf("%s: budget %d MiB, resident %d MiB", args, n, e.PeakResident>>20)
	}
}
