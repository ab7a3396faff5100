package registry

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// checkNames returns a *ContentError unless all names are portable paths inside a folder, and no two of them are the
// same file on a file system that ignores case. An artifact of a registry is not trusted: a name must not leave the
// folder, and not be a hidden file, such as .git/hooks/post-checkout.
func checkNames(files []File) error {
	seen := map[string]string{} // names in lower case, and those of folders with a slash at the end
	for _, f := range files {
		if err := checkName(f.Name); err != nil {
			return &ContentError{fmt.Sprintf("file name %q", f.Name), err}
		}
		key := strings.ToLower(f.Name)
		if other, ok := seen[key]; ok {
			return &ContentError{
				fmt.Sprintf("file name %q", f.Name),
				fmt.Errorf("%q is a name of the same artifact", other),
			}
		}
		seen[key] = f.Name
	}
	// A second pass, as a file may come before the one in a folder of its name.
	for _, f := range files {
		for dir := path.Dir(strings.ToLower(f.Name)); dir != "."; dir = path.Dir(dir) {
			if other, ok := seen[dir]; ok {
				return &ContentError{
					fmt.Sprintf("file name %q", f.Name),
					fmt.Errorf("%q is a file of the same artifact", other),
				}
			}
		}
	}
	return nil
}

// checkName checks one name, by the rules of all operating systems.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("a file without a name")
	case len(name) > 1024:
		return errors.New("longer than 1024 bytes")
	case strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0xfffd || strings.ContainsRune(`\:*?"<>|`, r)
	}):
		return errors.New(`a character that is not portable: control characters and \ : * ? " < > |`)
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
