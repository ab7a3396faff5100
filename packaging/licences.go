package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// noticeName matches the names of files and folders with the terms of use of a module.
var noticeName = regexp.MustCompile(`(?i)^(licen[cs]es?|unlicense|copying|copyright|notice|patents|third[-_]party[-_]licenses)([-._].*)?$`)

// licensed reads the licences of the modules from the folders of their packages and those above, up to the module's.
func licensed(modules map[string]*dependency, folders map[string][]string) ([]*dependency, error) {
	var list []*dependency
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		dirs := map[string]bool{}
		for _, dir := range folders[path] {
			for ; strings.HasPrefix(dir, m.Dir); dir = filepath.Dir(dir) {
				dirs[dir] = true
			}
		}
		for _, dir := range slices.Sorted(maps.Keys(dirs)) {
			if err := m.readNotices(dir, noticeName); err != nil {
				return nil, err
			}
		}
		if m.identify(); len(m.ids) == 0 {
			return nil, fmt.Errorf("%s %s: no known licence in its files", m.Path, m.Version)
		}
		list = append(list, m)
	}
	return list, nil
}

// readNotices reads the files of a folder whose names match, and all files of folders whose names match.
func (m *dependency) readNotices(dir string, names *regexp.Regexp) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !names.MatchString(e.Name()) || filepath.Ext(path) == ".go" {
			continue
		}
		if e.IsDir() {
			if err := m.readNotices(path, regexp.MustCompile("")); err != nil {
				return err
			}
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(m.Dir, path)
		if err != nil {
			return err
		}
		m.licences = append(m.licences, file{name: filepath.ToSlash(name), data: text})
	}
	return nil
}

// identify sets the SPDX identifiers of the licences.
func (m *dependency) identify() {
	for _, f := range m.licences {
		if f.name == "PATENTS" {
			continue // a grant, not a licence
		}
		for _, match := range licensecheck.Scan(f.data).Match {
			if !match.IsURL && !slices.Contains(m.ids, match.ID) {
				m.ids = append(m.ids, match.ID)
			}
		}
	}
	slices.Sort(m.ids)
}

// notices returns the licences of all modules as one text.
func notices(modules []*dependency) []byte {
	var b bytes.Buffer
	b.WriteString("mcompress contains the Go standard library and these modules, under the terms that follow.\n\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "- %s %s: %s\n", m.Path, m.Version, strings.Join(m.ids, ", "))
	}
	for _, m := range modules {
		for _, f := range m.licences {
			fmt.Fprintf(&b, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 80), m.Path, m.Version, f.name, bytes.TrimSpace(bytes.ReplaceAll(f.data, []byte("\r\n"), []byte("\n"))))
		}
	}
	return b.Bytes()
}
