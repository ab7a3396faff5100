package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/report"
)

// torch.onnx names the matrices of linear layers val_53; their nodes have the module path in their metadata.
func TestSkipByModulePath(t *testing.T) {
	model := filepath.Join(conform.Shared(t), "fixtures", "models", "transformer", "minilm_l6_v2_vocab3086",
		"model.onnx")
	code, stdout, stderr := call("quantize", "--skip", "*encoder.layer.0*", "--dry-run", "--json", "--no-verify", model)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	skipped, changed := 0, 0
	for _, w := range r.Ledger {
		switch layer := strings.Contains(w.Module, "encoder.layer.0."); {
		case layer && w.Status == "changed":
			t.Errorf("%s of %s is quantized", w.Tensor, w.Module)
		case layer && strings.HasPrefix(w.Tensor, "val_") && len(w.Before.Shape) == 2:
			skipped++
		case w.Status == "changed":
			changed++
		}
	}
	if skipped != 6 || changed != 30 {
		t.Errorf("%d matrices of layer 0 skipped and %d others quantized, want 6 and 30", skipped, changed)
	}
}
