package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// Methods that do not run the model write the same bytes on each CPU, and those that do the same without FMA as without
// AVX2, as docs/guide/recipes.md promises. On CPUs without AVX2 and FMA the runs are equal.
func TestBytesOnOtherCPUs(t *testing.T) {
	program, model := ownProgram(t), filepath.Join(filepath.Dir(conform.Fixtures(t)[0]), "cnn.onnx")
	for _, c := range []struct{ args, features string }{
		{"quantize --method float16", "|cpu.avx2=off|cpu.fma=off"},
		{"quantize --method weight-int8", "|cpu.avx2=off|cpu.fma=off"},
		{"quantize --method weight-int4", "|cpu.avx2=off|cpu.fma=off"},
		{"quantize --method dynamic-int8", "|cpu.avx2=off|cpu.fma=off"},
		{"prune", "|cpu.avx2=off|cpu.fma=off"},
		{"sparse", "|cpu.avx2=off|cpu.fma=off"},
		{"quantize --method static-int8", "cpu.avx2=off|cpu.fma=off"},
		{"quantize --method weight-int4 --algo gptq", "cpu.avx2=off|cpu.fma=off"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var first []byte
			for i, features := range strings.Split(c.features, "|") {
				out := filepath.Join(t.TempDir(), "out.onnx")
				cmd := exec.CommandContext(t.Context(), program,
					append(strings.Fields(c.args), model, "-o", out, "--report", "none", "--no-verify", "-q")...)
				cmd.Env = append(os.Environ(), "GODEBUG="+features)
				if text, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				b, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first = b
				} else if !bytes.Equal(b, first) {
					t.Errorf("GODEBUG=%s: another model", features)
				}
			}
		})
	}
}
