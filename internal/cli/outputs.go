package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/report"
)

// Outputs are the paths of the outputs: NAME.LABEL.onnx in the folder of the input or in the
// folder output; a single model's output may be a file. Several models need a
// folder, which need not exist. Two models with the same output are an error.
func Outputs(models []string, label, output string) ([]string, error) {
	if output != "" && !isFolder(output) {
		if len(models) == 1 && !os.IsPathSeparator(output[len(output)-1]) {
			return []string{output}, nil
		}
		if exists(output) {
			return nil, fmt.Errorf("--output %s: several models need a folder", output)
		}
	}
	outs := make([]string, len(models))
	from := map[string]string{}
	for i, m := range models {
		folder, name := filepath.Split(m)
		if output != "" {
			folder = output
		}
		out := filepath.Join(folder, report.Stem(name)+"."+label+".onnx")
		if other, taken := from[out]; taken {
			return nil, fmt.Errorf("%s and %s would both become %s", other, m, out)
		}
		from[out], outs[i] = m, out
	}
	return outs, nil
}

func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
