package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// python returns the Python of the tests, which has the pinned packages: that of MCOMPRESS_PYTHON, else .venv's.
func python(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("MCOMPRESS_PYTHON"); path != "" {
		return require(t, path)
	}
	return require(t, filepath.Join("..", ".venv", "bin", "python"))
}

// runPython is the output of a script with arguments.
func runPython(t *testing.T, script string, args ...string) string {
	t.Helper()
	return output(t, exec.Command(python(t), append([]string{"-B", "-c", script}, args...)...))
}

// venvPath is the path of a program in a virtual environment.
func venvPath(venv, name string) string {
	if runtime.GOOS == "windows" {
		return filepath.Join(venv, "Scripts", name+".exe")
	}
	return filepath.Join(venv, "bin", name)
}

// install returns a new virtual environment in which pip has installed mcompress from the wheels alone.
func install(t *testing.T) string {
	t.Helper()
	venv := filepath.Join(t.TempDir(), "venv")
	output(t, exec.Command(python(t), "-m", "venv", "--without-pip", venv))
	pip(t, venv, "install", "--no-index", "--find-links", dist, "--pre", "mcompress")
	return venv
}

// pip runs the pip of the tests for another environment.
func pip(t *testing.T, venv string, args ...string) string {
	t.Helper()
	c := exec.Command(python(t), append([]string{"-m", "pip", "--disable-pip-version-check", "--python", venvPath(venv, "python")}, args...)...)
	return output(t, c)
}

func TestWheelInstalls(t *testing.T) {
	venv := install(t)
	compress(t, func(args ...string) *exec.Cmd { return exec.Command(venvPath(venv, "mcompress"), args...) })
	compress(t, func(args ...string) *exec.Cmd {
		return exec.Command(venvPath(venv, "python"), append([]string{"-m", "mcompress"}, args...)...)
	})
	if got := pip(t, venv, "check"); !strings.Contains(got, "No broken requirements") {
		t.Errorf("pip check: %s", got)
	}
	if got := pip(t, venv, "show", "--files", "mcompress"); !strings.Contains(got, "Version: 1.2.3rc1\n") || !strings.Contains(got, "THIRD_PARTY_LICENSES.txt") {
		t.Errorf("pip show: %s", got)
	}
	// The exit code is the program's.
	if err := exec.Command(venvPath(venv, "python"), "-m", "mcompress", "quantize", "--max-size", "1KiB", "--dry-run",
		filepath.Join("..", "fixtures", "mlp.onnx")).Run(); err == nil || err.(*exec.ExitError).ExitCode() != 3 {
		t.Errorf("got %v, want exit code 3", err)
	}
	pip(t, venv, "uninstall", "--yes", "mcompress")
	if _, err := os.Stat(venvPath(venv, "mcompress")); err == nil {
		t.Error("the program is still installed")
	}
}

// With onnxruntime in the same environment, both forms find its library without a flag; without it, the error names the remedy.
func TestWheelFindsONNXRuntime(t *testing.T) {
	venv := install(t)
	t.Setenv("MCOMPRESS_ORT_LIB", "")
	os.Unsetenv("MCOMPRESS_ORT_LIB")
	bench := []string{"bench", "--backend", "ort", "--time", "10ms", filepath.Join("..", "fixtures", "mlp.onnx")}
	commands := map[string][]string{
		"mcompress":           append([]string{venvPath(venv, "mcompress")}, bench...),
		"python -m mcompress": append([]string{venvPath(venv, "python"), "-m", "mcompress"}, bench...),
	}
	for name, args := range commands {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err == nil || !strings.Contains(string(out), "no ONNX Runtime") {
			t.Errorf("%s without onnxruntime: %v\n%s", name, err, out)
		}
	}
	site := strings.TrimSpace(output(t, exec.Command(venvPath(venv, "python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")))
	installed := strings.TrimSpace(runPython(t, "import importlib.util as u; print(u.find_spec('onnxruntime').submodule_search_locations[0])"))
	if err := os.Symlink(installed, filepath.Join(site, "onnxruntime")); err != nil {
		t.Fatal(err)
	}
	for name, args := range commands {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s with onnxruntime: %v\n%s", name, err, out)
		}
	}
}

// Names, metadata and RECORD of every wheel are those of the specifications, as the package packaging reads them strictly.
func TestWheelMetadata(t *testing.T) {
	wheels, err := filepath.Glob(filepath.Join(dist, "*.whl"))
	if err != nil || len(wheels) != len(libcs()) {
		t.Fatalf("%d wheels, %v", len(wheels), err)
	}
	for _, wheel := range wheels {
		runPython(t, checkWheel, wheel)
	}
}

const checkWheel = `
import base64, csv, hashlib, io, os, sys, zipfile
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

path = sys.argv[1]
name, version, build, tags = parse_wheel_filename(os.path.basename(path))
with zipfile.ZipFile(path) as z:
    assert z.testzip() is None
    info = f"mcompress-{version}.dist-info/"
    metadata = Metadata.from_email(z.read(info + "METADATA"), validate=True)
    assert (metadata.name, metadata.version) == (name, version), metadata
    assert metadata.license_expression == "Apache-2.0" and metadata.description.startswith("# mcompress")
    for f in metadata.license_files:
        assert z.read(info + "licenses/" + f), f
    assert z.read(info + "sboms/mcompress.cdx.json")
    written = {line.removeprefix("Tag: ") for line in z.read(info + "WHEEL").decode().splitlines() if line.startswith("Tag: ")}
    assert written == {str(t) for t in tags}, (written, tags)
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(z.read(info + "RECORD").decode()))}
    assert set(rows) == set(z.namelist()), set(rows) ^ set(z.namelist())
    for n, (digest, size) in rows.items():
        if n == info + "RECORD":
            assert digest == size == ""
            continue
        data = z.read(n)
        assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), n
        assert int(size) == len(data), n
    script = z.getinfo(f"mcompress-{version}.data/scripts/mcompress")
    assert script.external_attr >> 16 & 0o777 == 0o755, oct(script.external_attr)
`
