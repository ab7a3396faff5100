package digest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Names are the names of the regular files below a folder, with slashes, in the order in which digests of folders list
// them. Hidden folders, such as .git, are left out.
func Names(ctx context.Context, folder string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(folder, func(p string, e fs.DirEntry, err error) error {
		switch hidden := strings.HasPrefix(e.Name(), ".") && p != folder; {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case e.IsDir() && hidden:
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		if st, err := os.Stat(p); err != nil || !st.Mode().IsRegular() {
			return nil // a link to nothing, a pipe
		}
		name, err := filepath.Rel(folder, p)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	return names, err
}
