package naming

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// Outputs are the paths of the outputs: NAME.LABEL.onnx in the folder of the input or in the folder output; a single
// model's output may be a file. Several models need a folder, which need not exist, and so do references to registries and
// URLs, unless a single model has a file. Folders may be URLs. Two models with the same output are an error. Errors name
// the fields of a Request, in braces.
func Outputs(models []string, label, output string) ([]string, error) {
	if output != "" && !isFolder(output) {
		if len(models) == 1 && !strings.HasSuffix(output, "/") && !os.IsPathSeparator(output[len(output)-1]) {
			return []string{output}, nil
		}
		if exists(output) {
			return nil, fmt.Errorf("{Output} %s: several models need a folder", output)
		}
	}
	if i := slices.IndexFunc(models, registry.IsReference); i >= 0 && output == "" {
		return nil, fmt.Errorf("%s: the result of a reference needs {Output}", models[i])
	}
	if i := slices.IndexFunc(models, remote.Is); i >= 0 && output == "" {
		return nil, fmt.Errorf("%s: the result of a URL needs {Output}", remote.Shown(models[i]))
	}
	return distinctOutputs(models, label, func(folder string) (string, error) { return cmp.Or(output, folder), nil })
}

// OutputsBelow are the paths of the outputs of a list: NAME.LABEL.onnx in the folder of the input, below the folder output. Of an absolute path the
// root is left out, as tar does; one that leaves the working folder is an error.
func OutputsBelow(models []string, label, output string) ([]string, error) {
	if exists(output) && !isFolder(output) {
		return nil, fmt.Errorf("{Output} %s: a list of models needs a folder", output)
	}
	return distinctOutputs(models, label, func(folder string) (string, error) {
		folder, err := below(folder)
		return remote.Join(output, filepath.ToSlash(folder)), err
	})
}

// below is the folder of a model below that of --output.
func below(folder string) (string, error) {
	folder = strings.TrimLeft(filepath.ToSlash(folder[len(filepath.VolumeName(folder)):]), "/")
	if folder != "" && !filepath.IsLocal(folder) {
		return "", pass.OptionErrorf("%s is not below the working folder: list it with an absolute path", folder)
	}
	return folder, nil
}

// StemBelow is the path, with slashes, of the result of a model of a list below the folder of --output, without .LABEL.onnx.
func StemBelow(model string) (string, error) {
	at, err := placed(model)
	if err != nil {
		return "", err
	}
	folder, name := filepath.Split(at)
	if folder, err = below(folder); err != nil {
		return "", err
	}
	return filepath.ToSlash(filepath.Join(folder, report.Stem(name))), nil
}

// distinctOutputs are NAME.LABEL.onnx in the folders that place returns for those of the models.
func distinctOutputs(models []string, label string, place func(folder string) (string, error)) ([]string, error) {
	outs := make([]string, len(models))
	from := map[string]string{}
	for i, m := range models {
		at, err := placed(m)
		if err != nil {
			return nil, err
		}
		folder, name := filepath.Split(at)
		if folder, err = place(folder); err != nil {
			return nil, err
		}
		out := remote.Join(folder, report.Stem(name)+"."+label+".onnx")
		if other, taken := from[out]; taken {
			return nil, fmt.Errorf("%s and %s would both become %s; with {List.KeepPaths} results have the paths of the list", remote.Shown(other), remote.Shown(m), out)
		}
		from[out], outs[i] = m, out
	}
	return outs, nil
}

// placed is the path of a model that its result is named by. That of a reference is the name in the registry and the tag, alias or first digits of the digest;
// that of a URL is its host or bucket and path.
func placed(model string) (string, error) {
	if remote.Is(model) {
		return remote.Name(model), nil
	}
	if !registry.IsReference(model) {
		return model, nil
	}
	ref, err := registry.Parse(model)
	if err != nil {
		return "", err
	}
	version := ref.Tag
	if ref.Digest != "" {
		version = strings.TrimPrefix(ref.Digest, "sha256:")[:12]
	}
	name := filepath.FromSlash(ref.Name)
	if version != "" {
		name += "-" + version
	}
	return name, nil
}

func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Relative is a path or URL from a folder, with slashes, or the whole of it.
func Relative(folder, to string) string {
	if remote.Is(folder) || remote.Is(to) {
		return strings.TrimPrefix(to, strings.TrimSuffix(folder, "/")+"/")
	}
	if whole, err := filepath.Abs(to); err == nil {
		if from, err := filepath.Abs(folder); err == nil {
			if rel, err := filepath.Rel(from, whole); err == nil {
				to = rel
			}
		}
	}
	return filepath.ToSlash(to)
}

// PageOf is the path of the HTML form of a report.
func PageOf(path string) string {
	html, _ := report.FormatNamed("html")
	return strings.TrimSuffix(path, report.JSONSuffix) + html.Suffix
}
