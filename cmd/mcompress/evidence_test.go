package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// The documents of real runs are valid: with external data, with recorded data, with a training step, and of two models
// without a recipe.
func TestDocumentsAreValid(t *testing.T) {
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	samples := filepath.Join(fixtures, "digits_test.npz")
	for name, args := range map[string][]string{
		"data":     {"quantize", "--method", "static-int8", "--data", samples, filepath.Join(fixtures, "mlp.onnx")},
		"external": {"quantize", filepath.Join(fixtures, "external.onnx")},
		"training": {"finetune", "--data", samples, "--epochs", "1", "--limit", "64",
			filepath.Join(fixtures, "mlp.onnx")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out.onnx")
			args := append(args, "-o", out, "--no-sync", "--report", "json,md,cyclonedx,intoto,card",
				"--base-model", "owner/model")
			if code, _, stderr := call(args...); code != exitDone {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			checkDocuments(t, dir, "out")
		})
	}
}

// checkDocuments lets other tools read the documents of NAME.onnx in a folder.
func checkDocuments(t *testing.T, dir, name string) {
	t.Helper()
	oracle := conform.Start(t)
	read := func(suffix string) string {
		text, err := os.ReadFile(filepath.Join(dir, name+suffix))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := oracle.CycloneDX(read(".cdx.json")); err != nil {
		t.Error(err)
	}
	if err := oracle.Provenance(read(".intoto.json")); err != nil {
		t.Error(err)
	}
	if card, err := oracle.ModelCard(read(".card.md")); err != nil || card.BaseModel != "owner/model" {
		t.Errorf("read as %+v: %v", card, err)
	}
	var statement struct {
		Subject   []digested
		Predicate struct {
			RunDetails struct{ Byproducts []digested }
		}
	}
	if err := json.Unmarshal([]byte(read(".intoto.json")), &statement); err != nil {
		t.Fatal(err)
	}
	for _, d := range append(statement.Subject, statement.Predicate.RunDetails.Byproducts...) {
		text, err := os.ReadFile(filepath.Join(dir, d.Name))
		if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != d.Digest["sha256"] {
			t.Errorf("%s: the statement has another digest: %v", d.Name, err)
		}
	}
}

// A digested is a resource of an in-toto statement.
type digested struct {
	Name   string
	Digest map[string]string
}
