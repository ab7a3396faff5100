package main

import (
	"fmt"
	"slices"
)

// A target is a program for one platform, and the packages it is put into.
type target struct {
	goos, goarch string
	libc         string // "glibc" if the program loads the C library, and with it ONNX Runtime
	wheel        string // platform tag of the Python wheel (PEP 425)
	npm          string // platform and architecture as Node.js names them; without one, no npm package
}

// targets are all of them. On Linux there are two programs for each architecture: one that is static and runs anywhere, and one that is linked to
// glibc, as loading ONNX Runtime requires its dynamic loader. Go 1.26 requires macOS 12.
func targets() []target {
	return []target{
		{"linux", "amd64", "", "musllinux_1_1_x86_64", "linux-x64"},
		{"linux", "arm64", "", "musllinux_1_1_aarch64", "linux-arm64"},
		{"linux", "amd64", "glibc", "manylinux_2_17_x86_64.manylinux2014_x86_64", ""},
		{"linux", "arm64", "glibc", "manylinux_2_17_aarch64.manylinux2014_aarch64", ""},
		{"darwin", "amd64", "", "macosx_12_0_x86_64", "darwin-x64"},
		{"darwin", "arm64", "", "macosx_12_0_arm64", "darwin-arm64"},
		{"windows", "amd64", "", "win_amd64", "win32-x64"},
		{"windows", "arm64", "", "win_arm64", "win32-arm64"},
	}
}

// selected returns the targets of the platforms, all if there are none.
func selected(platforms []string) ([]target, error) {
	if len(platforms) == 0 {
		return targets(), nil
	}
	var list []target
	for _, p := range platforms {
		before := len(list)
		for _, t := range targets() {
			if t.platform() == p && !slices.Contains(list, t) {
				list = append(list, t)
			}
		}
		if len(list) == before {
			return nil, fmt.Errorf("there are no packages for platform %q", p)
		}
	}
	return list, nil
}

func (t target) platform() string { return t.goos + "/" + t.goarch }

func (t target) String() string {
	if t.libc != "" {
		return t.platform() + " " + t.libc
	}
	return t.platform()
}

// static reports whether the program needs nothing but the kernel of Linux.
func (t target) static() bool { return t.goos == "linux" && t.libc == "" }

// executable is the file name of the program.
func (t target) executable() string {
	if t.goos == "windows" {
		return "mcompress.exe"
	}
	return "mcompress"
}

// name is the name of files for the target, without extension.
func (t target) name(v version) string {
	name := "mcompress_" + v.semver() + "_" + t.goos + "_" + t.goarch
	if t.libc != "" {
		name += "_" + t.libc
	}
	return name
}
