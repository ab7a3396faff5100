package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// A maker makes the files of variants in a folder with a built mcompress.
type maker struct {
	binary, folder, root string
}

// newMaker builds mcompress into the folder.
func newMaker(ctx context.Context, folder string) (*maker, error) {
	root, err := conform.Root()
	if err != nil {
		return nil, err
	}
	m := &maker{filepath.Join(folder, "mcompress"), folder, root}
	build := exec.CommandContext(ctx, "go", "build", "-o", m.binary, "./cmd/mcompress")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, out)
	}
	return m, nil
}

// make returns the path of a variant of a model and the forms that its steps wrote.
func (m *maker) make(ctx context.Context, model model, v variant) (string, []string, error) {
	path, err := resolve(model.Path)
	if err != nil {
		return "", nil, err
	}
	data, err := m.relative(model.Data)
	if err != nil {
		return "", nil, err
	}
	var forms []string
	for i, step := range v.Steps {
		out := filepath.Join(m.folder, fmt.Sprintf("%s.%s.%d.onnx", model.Name,
			strings.NewReplacer(" ", "-", ",", "").Replace(v.Name), i))
		args := append(withData(step, data), "--no-verify", "--no-sync", "--report", "json", "-o", out, path)
		command := exec.CommandContext(ctx, m.binary, args...)
		command.Dir = m.root
		if text, err := command.CombinedOutput(); err != nil {
			return "", nil, fmt.Errorf("mcompress %s: %w: %s", strings.Join(args, " "), err, text)
		}
		if path = out; i == len(v.Steps)-1 {
			if forms, err = writtenForms(out); err != nil {
				return "", nil, err
			}
		}
	}
	return path, forms, nil
}

// relative returns a path relative to the root, as the recipe in the metadata of a file contains it.
func (m *maker) relative(path string) (string, error) {
	absolute, err := resolve(path)
	if err != nil || absolute == "" {
		return "", err
	}
	return filepath.Rel(m.root, absolute)
}

// withData replaces DATA by the path, or leaves it out together with its flag.
func withData(step []string, data string) []string {
	step = slices.Clone(step)
	if i := slices.Index(step, "DATA"); i >= 0 && data == "" {
		return slices.Delete(step, i-1, i+1)
	} else if i >= 0 {
		step[i] = data
	}
	return step
}

// writtenForms reads the forms in the report of the file.
func writtenForms(path string) ([]string, error) {
	text, err := os.ReadFile(strings.TrimSuffix(path, ".onnx") + ".report.json")
	if err != nil {
		return nil, err
	}
	var report struct {
		Ledger []struct {
			Form string
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	var forms []string
	for _, row := range report.Ledger {
		if row.Form != "" && !slices.Contains(forms, row.Form) {
			forms = append(forms, row.Form)
		}
	}
	slices.Sort(forms)
	return forms, nil
}

// digest is the start of the SHA-256 of a file.
func digest(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16], nil
}
