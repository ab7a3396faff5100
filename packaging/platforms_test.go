package main

import (
	"archive/zip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// packed is a release of all platforms, of programs that are no programs, and its folder.
func packed(t *testing.T) *release {
	t.Helper()
	v, err := parseVersion(tag)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: v, epoch: time.Unix(1700000000, 0).UTC(), sources: "..", out: t.TempDir(), targets: targets()}
	var programs []*program
	for _, target := range r.targets {
		p := &program{target: target, binary: []byte("program for " + target.String()), sbom: []byte("{}"),
			notices: []file{{name: "LICENSE", data: []byte("licence")}, {name: "THIRD_PARTY_LICENSES.txt", data: []byte("licences")}}}
		if err := r.pack(p, []file{{name: "man/man1/mcompress.1", data: []byte("manual")}}); err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	for _, write := range []func() error{func() error { return r.launcher(programs) }, func() error { return r.image(programs) }, r.formula, r.checksums} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestPackagesOfAllPlatforms(t *testing.T) {
	r := packed(t)
	for _, target := range r.targets {
		want := "program for " + target.String()
		if got := r.archived(t, target); got != want {
			t.Errorf("%s: the archive has %q", target, got)
		}
		wheel := filepath.Join(r.out, "mcompress-1.2.3rc1-py3-none-"+target.wheel+".whl")
		if got := zipEntry(t, wheel, "mcompress-1.2.3rc1.data/scripts/"+target.executable()); got != want {
			t.Errorf("%s: the wheel has %q", target, got)
		}
		if target.npm == "" {
			continue
		}
		tgz := filepath.Join(r.out, "npm", "mcompress-"+target.npm+"-1.2.3-rc.1.tgz")
		if got := tarEntry(t, tgz, "package/bin/"+target.executable()); got != want {
			t.Errorf("%s: the npm package has %q", target, got)
		}
		var m struct {
			Name, Version string
			OS, CPU       []string
		}
		if err := json.Unmarshal([]byte(tarEntry(t, tgz, "package/package.json")), &m); err != nil {
			t.Fatal(err)
		}
		if m.Name != "@mcompress/"+target.npm || m.Version != "1.2.3-rc.1" || strings.Join(slices.Concat(m.OS, m.CPU), "-") != target.npm {
			t.Errorf("%s: %+v", target, m)
		}
	}
}

// The launcher depends on exactly the npm packages of the release, and the formula names archives by their digests.
func TestReferencesBetweenPackages(t *testing.T) {
	r := packed(t)
	var m struct{ OptionalDependencies map[string]string }
	if err := json.Unmarshal([]byte(tarEntry(t, filepath.Join(r.out, "npm", "mcompress-1.2.3-rc.1.tgz"), "package/package.json")), &m); err != nil {
		t.Fatal(err)
	}
	if len(m.OptionalDependencies) != 6 {
		t.Errorf("got %v", m.OptionalDependencies)
	}
	for name, version := range m.OptionalDependencies {
		if _, err := os.Stat(filepath.Join(r.out, "npm", "mcompress-"+strings.TrimPrefix(name, "@mcompress/")+"-"+version+".tgz")); err != nil {
			t.Error(err)
		}
	}
	sums, formula := digests(t, r.out), string(read(t, filepath.Join(r.out, "mcompress.rb")))
	for _, name := range []string{"darwin_arm64", "darwin_amd64", "linux_arm64_glibc", "linux_amd64_glibc"} {
		archive := "mcompress_1.2.3-rc.1_" + name + ".tar.gz"
		_, after, found := strings.Cut(formula, "/releases/download/v1.2.3-rc.1/"+archive+"\"\n")
		if want := `      sha256 "` + sums[archive] + `"`; !found || !strings.HasPrefix(after, want) {
			t.Errorf("the formula does not name %s by %s:\n%s", archive, sums[archive], formula)
		}
	}
}

// The image has an entry for each architecture.
func TestImageIndex(t *testing.T) {
	r := packed(t)
	index := output(t, exec.Command("tar", "-xOf", filepath.Join(r.out, "mcompress_1.2.3-rc.1_image.tar"), "--wildcards", "blobs/sha256/*"))
	for _, architecture := range []string{"amd64", "arm64"} {
		if !strings.Contains(index, `"platform":{"architecture":"`+architecture+`","os":"linux"}`) {
			t.Errorf("no image for %s", architecture)
		}
	}
}

// archived is the program in the archive of a target.
func (r *release) archived(t *testing.T, target target) string {
	t.Helper()
	name := target.name(r.version)
	if target.goos == "windows" {
		return zipEntry(t, filepath.Join(r.out, name+".zip"), name+"/"+target.executable())
	}
	return tarEntry(t, filepath.Join(r.out, name+".tar.gz"), name+"/"+target.executable())
}

func tarEntry(t *testing.T, archive, name string) string {
	t.Helper()
	return output(t, exec.Command("tar", "-xzOf", archive, name))
}

func zipEntry(t *testing.T, archive, name string) string {
	t.Helper()
	z, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f, err := z.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
