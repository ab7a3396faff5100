//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// A writer is a command line and a file or folder that it writes.
type writer struct{ file, args string }

// writers are command lines with a file that each writes besides the model. They run in a folder with mlp.onnx,
// cnn.onnx and digits_test.npz.
var writers = []writer{
	{"out.onnx", "quantize mlp.onnx -o out.onnx --report none"},
	{"mlp.dynamic-int8.onnx", "quantize mlp.onnx"},
	{"out.report.json", "quantize mlp.onnx -o out.onnx"},
	{"out.report.html", "quantize mlp.onnx -o out.onnx --no-sync"},
	{"reports/out.report.md", "quantize mlp.onnx -o out.onnx --report-dir reports"},
	{"out.rejected.onnx", "quantize mlp.onnx -o out.onnx --min-ratio 100"},
	{"out.onnx.data", "quantize external.onnx -o out.onnx --report none"},
	{"ranges.json", "quantize --method static-int8 mlp.onnx -o out.onnx --save-ranges ranges.json"},
	{"state.zip", "finetune cnn.onnx --data digits_test.npz --steps 1 --no-verify -o out.onnx --save state.zip"},
	{"state.zip", "finetune cnn.onnx --data digits_test.npz --steps 1 --no-verify -o out.onnx --save state.zip --resume"},
	{"sparse/1.weight.npz", "sparse pruned.onnx -o out.onnx --export sparse"},
	{"plan.html", "memory mlp.onnx --html plan.html"},
	{"plan.html", "memory mlp.onnx --training --html plan.html"},
	{"trace.json", "bench mlp.onnx --profile --trace trace.json --runs 1"},
	{"mlp.stage1.onnx", "split mlp.onnx"},
	{"mlp.stages.json", "split mlp.onnx"},
	{"mlp.rank1.segment1.onnx", "split mlp.onnx --tensor-parallel 2"},
	{"mlp.shards.json", "split mlp.onnx --tensor-parallel 2"},
	{"mlp.vs.cnn.report.json", "report cnn.onnx mlp.onnx"},
	{"index.html", "report ."},
	{"out/index.json", "quantize --files-from list -o out"},
	{"out.md", "report pruned.report.json --output out.md"},
	{"out.environment.json", "quantize mlp.onnx -o out.onnx"},
	{"out.sig", "sign --key key.pem mlp.onnx -o out.sig"},
	{"out.onnx", "prune mlp.onnx -o out.onnx"},
	{"out.mcz", "pack mlp.onnx -o out.mcz"},
	{"out.onnx", "unpack mlp.mcz -o out.onnx"},
	{"out.onnx", "apply recipe.yaml mlp.onnx -o out.onnx"},
	{"out.onnx", "distill --teacher cnn.onnx --student cnn.onnx --data digits_test.npz --steps 1 --no-verify -o out.onnx"},
}

// signingKey is a private key of the curve P-256.
const signingKey = `-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIJpbxnSpOHfXAkxvu/0QmCIFKoKSpSqKc1x+bEqSSqHBoAoGCCqGSM49
AwEHoUQDQgAEqW2JMVzAqV5nVX87GYI08eDJpWi+6mFTV+KwDi5PFY+hgzRzsMbE
d5bmSSryerzDwgvu4L8CU2dteh/UlEacSQ==
-----END EC PRIVATE KEY-----
`

// Files that are derived from a model are not more accessible than the model.
func TestResultsOfPrivateModelsArePrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	eachWriter(t, 0o600, func(t *testing.T, file string, args []string) {
		if code, _, stderr := call(args...); code != exitDone && code != exitGate {
			t.Fatalf("exit code %d, %s", code, stderr)
		}
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
		for name := range strings.SplitSeq(listing(t), " ") {
			if st, err := os.Stat(name); err != nil || st.Mode() != 0o600 {
				t.Errorf("%s: %v %v", name, st.Mode(), err)
			}
		}
	})
}

// eachWriter is eachCommand for writers.
func eachWriter(t *testing.T, mode os.FileMode, test func(t *testing.T, file string, args []string)) {
	eachCommand(t, mode, writers, test)
}

// eachCommand calls test for each command line in a folder of its own, with inputs of the given mode.
func eachCommand(t *testing.T, mode os.FileMode, list []writer, test func(t *testing.T, file string, args []string)) {
	fixtures := filepath.Dir(conform.Fixtures(t)[0])
	pruned := filepath.Join(prepared(t, "pruned"), "pruned.onnx")
	must(t, []string{"prune", "--amount", "0.95", filepath.Join(fixtures, "mlp.onnx"), "-o", pruned,
		"--report", "json", "--no-verify", "-q"})
	packed := filepath.Join(filepath.Dir(pruned), "mlp.mcz")
	must(t, []string{"pack", filepath.Join(fixtures, "mlp.onnx"), "-o", packed, "-q"})
	inputs := []string{pruned, strings.TrimSuffix(pruned, ".onnx") + ".report.json", packed}
	for _, name := range []string{"mlp.onnx", "cnn.onnx", "external.onnx", "external_a.bin", "external_b.bin",
		"digits_test.npz"} {
		inputs = append(inputs, filepath.Join(fixtures, name))
	}
	for _, w := range list {
		t.Run(w.args, func(t *testing.T) {
			t.Chdir(prepared(t, "dir"))
			for _, path := range inputs {
				b, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(filepath.Base(path), b, mode)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(
				os.WriteFile("recipe.yaml", []byte("steps:\n  - method: dynamic-int8\n"), mode),
				os.WriteFile("list", []byte("mlp.onnx\n"), mode),
				os.WriteFile("key.pem", []byte(signingKey), mode),
				os.Mkdir("stored", 0o755),
				os.Rename("cnn.onnx", "stored/cnn.onnx"),
				os.Link("stored/cnn.onnx", "cnn.onnx"),
				os.MkdirAll(filepath.Dir(w.file), 0o755),
			); err != nil {
				t.Fatal(err)
			}
			test(t, w.file, append(strings.Fields(w.args), "-q"))
		})
	}
}

// listing is the files below the working folder.
func listing(t *testing.T) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if !d.IsDir() || strings.HasPrefix(d.Name(), ".m") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// What the program finds by itself, or a file of others names, is read if it is a regular file: a pipe would be waited
// for, and a device has no end.
func TestPoliciesNameRegularFiles(t *testing.T) {
	eachPolicy := map[string]func() error{
		"a pipe": func() error { return syscall.Mkfifo("mcompress.yaml", 0o600) },
		"a device": func() error {
			return os.WriteFile("mcompress.yaml", []byte("gates: {max-baseline-size-ratio: 1}\nbaseline: /dev/zero\n"), 0o600)
		},
		"a link to a device": func() error {
			return errors.Join(os.WriteFile("mcompress.yaml",
				[]byte("gates: {max-baseline-size-ratio: 1}\nbaseline: before.onnx\n"), 0o600),
				os.Symlink("/dev/zero", "before.report.json"))
		},
	}
	for name, write := range eachPolicy {
		t.Run(name, func(t *testing.T) {
			model := filepath.Join(filepath.Dir(conform.Fixtures(t)[0]), "mlp.onnx")
			t.Chdir(t.TempDir())
			if err := write(); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := call("quantize", "-o", "out.onnx", model); code != exitUsage && code != exitInput ||
				!strings.Contains(stderr, "not a regular file") {
				t.Errorf("exit code %d, %s", code, stderr)
			}
		})
	}
}
