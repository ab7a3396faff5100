package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// A runtime runs models in an environment of its own, .compat/NAME, whose packages environments/NAME.txt pins.
type runtime struct {
	Name    string // of the environment
	Title   string
	Package string // whose pinned version is that of the runtime
	Adapter string // of worker.py; the others are JavaScript
	Browser bool
	Untimed bool // made for correctness
}

// runtimes in the order of the columns. The first and last version of ONNX Runtime are those of the sample of tests.
func runtimes() []runtime {
	var all []runtime
	for _, version := range []string{"1.17", "1.20", "1.22", "1.23", "1.24", "1.26", "1.31"} {
		all = append(all, runtime{Name: "ort-" + version, Title: "ONNX Runtime", Package: "onnxruntime",
			Adapter: "ort"})
	}
	return append(all,
		runtime{Name: "web", Title: "onnxruntime-web, node", Package: "onnxruntime-web"},
		runtime{Name: "chromium", Title: "onnxruntime-web, Chromium", Package: "onnxruntime-web", Browser: true},
		runtime{Name: "openvino", Title: "OpenVINO", Package: "openvino", Adapter: "openvino"},
		runtime{Name: "opencv", Title: "OpenCV", Package: "opencv-python-headless", Adapter: "opencv"},
		runtime{Name: "tract", Title: "tract", Package: "tract", Adapter: "tract"},
		runtime{Name: "reference", Title: "onnx reference evaluator", Package: "onnx", Adapter: "reference",
			Untimed: true},
	)
}

const (
	oldest = "ort-1.17"
	newest = "ort-1.31"
)

// references compute the right outputs of a file: the first one that runs it.
func references() []runtime {
	return []runtime{
		{Name: newest, Adapter: "unoptimized"},
		{Name: "reference", Adapter: "reference"},
	}
}

// environment is the name of the folder of the packages: both kinds of onnxruntime-web share one.
func (r runtime) environment() string {
	if r.Adapter == "" {
		return "web"
	}
	return r.Name
}

// command starts a worker that reads requests from stdin.
func (r runtime) command(root string) ([]string, error) {
	environment := filepath.Join(root, ".compat", r.environment())
	sources := filepath.Join(root, "internal", "dev", "compat")
	command := []string{filepath.Join(environment, "bin", "python"), filepath.Join(sources, "worker.py"), r.Adapter}
	needed := command[0]
	if r.Adapter == "" {
		needed = filepath.Join(environment, "node_modules", "onnxruntime-web", "dist", "ort.node.min.mjs")
		command = []string{"node", filepath.Join(sources, "web.mjs"), needed}
	}
	if _, err := os.Stat(needed); err != nil {
		return nil, fmt.Errorf("no environment of %s (%w); `make compat-environments` makes all, `make compat-sample` those of the tests", r.Name, err)
	}
	return command, nil
}

// version reads the pinned version.
func (r runtime) version() (string, error) {
	root, err := conform.Root()
	if err != nil {
		return "", err
	}
	folder, pin := filepath.Join(root, "internal", "dev", "compat", "environments"),
		"(?m)^"+regexp.QuoteMeta(r.Package)+`==(\S+)`
	path := filepath.Join(folder, r.environment()+".txt")
	if r.Adapter == "" {
		path, pin = filepath.Join(folder, "web", "package.json"), regexp.QuoteMeta(r.Package)+`": "([^"]+)"`
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(pin).FindStringSubmatch(string(text))
	if found == nil {
		return "", fmt.Errorf("%s does not pin %s", path, r.Package)
	}
	return found[1], nil
}

// short is the head of a column.
func (r runtime) short() string { return strings.ReplaceAll(r.Name, "ort-", "ORT ") }
