package folder

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/untrusted"
	"github.com/mcompress/mcompress/pass"
)

// modulesFile lists the modules of sentence-transformers, each with the folder of its configuration, such as 1_Pooling.
const modulesFile = "modules.json"

// modules adds the files of the folders that modules.json names, which then are not among those that are omitted, and
// returns their names.
func (f *Folder) modules() ([]string, error) {
	if !slices.Contains(f.Copied, modulesFile) {
		return nil, nil
	}
	c, err := readConfig(f.from, modulesFile)
	if err != nil {
		return nil, err
	}
	var modules []struct{ Path string }
	if err := bounded.JSON(c.text, &modules); err != nil {
		return nil, pass.OptionErrorf("%s: not a list of modules: %v", f.path(modulesFile), err)
	}
	var names []string
	seen := map[string]bool{}
	for _, m := range modules {
		dir, err := untrusted.Path("", path.Clean(m.Path))
		if err != nil || dir == "." || seen[dir] {
			continue // the folder itself, or one outside of it
		}
		seen[dir] = true
		found, err := f.filesBelow(dir)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	f.Omitted = slices.DeleteFunc(f.Omitted, func(name string) bool { return seen[name] })
	slices.Sort(names)
	names = slices.Compact(names)
	f.Copied = append(f.Copied, names...)
	return names, nil
}

// filesBelow are the files of a folder and those below it, by their paths. Those that are hidden or models are left out,
// too large ones are omitted. A folder that does not exist has none.
func (f *Folder) filesBelow(dir string) (names []string, err error) {
	entries, err := os.ReadDir(f.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		var link *LinkError
		st, err := stat(f.from, name)
		switch {
		case strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(name, ".onnx") || errors.Is(err, fs.ErrNotExist):
		case errors.As(err, &link):
			f.Omitted = append(f.Omitted, name)
		case err != nil:
			return nil, err
		case e.IsDir(): // a link to a folder may lead to one above it
			found, err := f.filesBelow(name)
			if err != nil {
				return nil, err
			}
			names = append(names, found...)
		case !st.Mode().IsRegular() || st.Size() > maxSize:
			f.Omitted = append(f.Omitted, name)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}
