package conform

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// installed prints the versions of the packages that its arguments name, as JSON; "" is that of a missing one.
const installed = `
import importlib.metadata as metadata, json, sys
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
json.dump({name: version(name) for name in sys.argv[1:]}, sys.stdout)
`

// A requirement is a line of requirements.txt.
var requirement = regexp.MustCompile(`(?m)^([\w.-]+)==(\S+)`)

// checkedPythons has the results of unpinned by path, as the question starts a process.
var checkedPythons sync.Map

// pinned is unpinned, asked once for each Python.
func pinned(python string) error {
	ask, _ := checkedPythons.LoadOrStore(python, sync.OnceValue(func() error { return unpinned(python) }))
	return ask.(func() error)()
}

// unpinned returns an error that names the packages of which a Python has another version than requirements.txt: with
// those, references compute other digits or lack operators, which looks like an error of the code under test.
func unpinned(python string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "internal", "dev", "conform", "requirements.txt"))
	if err != nil {
		return err
	}
	requirements := requirement.FindAllStringSubmatch(string(text), -1)
	arguments := []string{"-c", installed}
	for _, r := range requirements {
		arguments = append(arguments, r[1])
	}
	out, err := Command(python, arguments...).Output()
	if err != nil {
		return fmt.Errorf("versions of the packages of %s: %w", python, err)
	}
	var versions map[string]string
	if err := json.Unmarshal(out, &versions); err != nil {
		return fmt.Errorf("versions of the packages of %s: %w", python, err)
	}
	var wrong []string
	for _, r := range requirements {
		switch name, want, got := r[1], r[2], versions[r[1]]; got {
		case want:
		case "":
			wrong = append(wrong, fmt.Sprintf("%s %s is missing", name, want))
		default:
			wrong = append(wrong, fmt.Sprintf("%s %s is not the pinned %s", name, got, want))
		}
	}
	if wrong != nil {
		return fmt.Errorf("%s: %s: `make environments` installs the pinned packages into .venv, which tests use unless MCOMPRESS_PYTHON is set",
			python, strings.Join(wrong, ", "))
	}
	return nil
}
