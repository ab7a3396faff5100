package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A model is a file of the sweep.
type model struct {
	name   string // path below the folder of models, without extension
	path   string // absolute
	digest string // of the model file
}

// findModels lists the models below dir/models by name, those of equal bytes once.
func findModels(dir string) ([]model, error) {
	root, err := filepath.Abs(filepath.Join(dir, "models"))
	if err != nil {
		return nil, err
	}
	var found []model
	seen := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".onnx" {
			return err
		}
		digest, err := digestOf(path)
		if err != nil || seen[digest] {
			return err
		}
		seen[digest] = true
		name, err := filepath.Rel(root, path)
		found = append(found, model{name: strings.TrimSuffix(name, ".onnx"), path: path, digest: digest})
		return err
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no models below %s: run make zoo-models", root)
	}
	return found, err
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)[:8]), err
}
