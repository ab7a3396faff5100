package untrusted

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// maxName is the number of bytes that a name has at most: the path of a file of Linux has 4096 with its folder.
const maxName = 1024

// A NameError is a name that is not that of a file below a folder, on any operating system.
type NameError struct {
	Name string
	Err  error
}

// Error names the file.
func (e *NameError) Error() string { return fmt.Sprintf("file name %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *NameError) Unwrap() error { return e.Err }

// Path is the path of a file below the folder dir by its name from elsewhere, with slashes, for reading: a *NameError
// unless the name stays in the folder on this operating system; "." is the folder itself. Links are not looked at. Names
// of files that are made are checked by CheckNames before.
func Path(dir, name string) (string, error) {
	local, err := filepath.Localize(name)
	if err != nil {
		return "", &NameError{name, errors.New("not a path inside the folder")}
	}
	return filepath.Join(dir, local), nil
}

// CheckNames returns a *NameError unless names are portable paths of files below one folder, with slashes, none of whose
// elements is hidden, such as .git/hooks/post-checkout. No two of them are the same file on a file system that ignores
// case, and none is the folder of another one.
func CheckNames(names []string) error {
	seen := make(map[string]string, len(names)) // by the folded name
	for _, name := range names {
		if err := checkName(name); err != nil {
			return &NameError{name, err}
		}
		key := fold(name)
		switch other, ok := seen[key]; {
		case ok && other == name:
			return &NameError{name, errors.New("appears twice")}
		case ok:
			return &NameError{name, fmt.Errorf("%q is a name of the same file", other)}
		}
		seen[key] = name
	}
	// A second pass, as a file may come before the one in a folder of its name.
	for _, name := range names {
		for dir := path.Dir(fold(name)); dir != "."; dir = path.Dir(dir) {
			if other, ok := seen[dir]; ok {
				return &NameError{name, fmt.Errorf("%q is a file, not a folder", other)}
			}
		}
	}
	return nil
}

// fold gives names that differ in case only the same text: the lower case of the upper case, as some letters, such as ſ
// and s, have the same upper case only.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// checkName checks one name by the rules of all operating systems, so that a model that one of them can unpack is a
// model for all.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("a file without a name")
	case len(name) > maxName:
		return fmt.Errorf("longer than %d bytes", maxName)
	case strings.ContainsFunc(name, isHarmful):
		return errors.New(`a character that is not portable or not visible: \ : * ? " < > |, controls, and those that change the direction of text`)
	}
	for _, element := range strings.Split(name, "/") {
		switch {
		case element == "" || element == "." || element == "..":
			return errors.New("not a path inside the folder")
		case strings.HasPrefix(element, "."):
			return errors.New("a hidden file or folder")
		case strings.HasSuffix(element, ".") || strings.HasSuffix(element, " "):
			return errors.New("a name that ends in a dot or space, which Windows removes")
		case isDevice(element):
			return errors.New("the name of a device on Windows")
		}
	}
	return nil
}

// isHarmful reports whether a character has a meaning in paths of Windows, or none that a reader of the name sees:
// controls and format characters, such as U+202E, which lets exe.nno look like onn.exe. U+FFFD is what invalid UTF-8
// becomes.
func isHarmful(r rune) bool {
	return !unicode.IsPrint(r) || r == unicode.ReplacementChar || strings.ContainsRune(`\:*?"<>|`, r)
}

// isDevice reports whether Windows opens a device instead of a file of this name, with any extension.
func isDevice(element string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(element), ".")
	stem = strings.TrimRight(stem, " ")
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, isPort := strings.CutPrefix(stem, "COM")
	if !isPort {
		port, isPort = strings.CutPrefix(stem, "LPT")
	}
	return isPort && len([]rune(port)) == 1 && strings.Contains("0123456789¹²³", port)
}
