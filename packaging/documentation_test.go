package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var releaseFile = regexp.MustCompile(`mcompress[-_][\w.-]*0\.1\.0[\w.-]*\.(tar\.gz|zip|tar|tgz|whl)`)

// The files of a release that README.md and the guide name are written by it.
func TestDocumentedFilesExist(t *testing.T) {
	found := 0
	for _, page := range []string{"README.md", "docs/guide/ci.md", "CONTRIBUTING.md"} {
		for _, name := range releaseFile.FindAllString(string(read(t, filepath.Join("..", page))), -1) {
			found++
			name = strings.Replace(name, "0.1.0", strings.TrimPrefix(tag, "v"), 1)
			if strings.HasSuffix(name, ".tgz") {
				name = "npm/" + name
			}
			if _, err := os.Stat(filepath.Join(dist, name)); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if found < 8 {
		t.Errorf("%d names of files, want 8", found)
	}
}

// fenced returns the code block of a language that contains a text.
func fenced(t *testing.T, page, language, text string) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```\n").FindAllStringSubmatch(string(read(t, page)), -1) {
		if strings.Contains(m[1], text) {
			return m[1]
		}
	}
	t.Fatalf("%s has no block of %s with %q", page, language, text)
	return ""
}

// The commands of the jobs for GitLab and Jenkins run: pip takes the wheel of this release, and the model is a fixture.
func TestJobsOfTheGuide(t *testing.T) {
	page := filepath.Join("..", "docs", "guide", "ci.md")
	var jobs map[string]struct {
		Script    []string
		Artifacts struct {
			When  string
			Paths []string
		}
	}
	if err := yaml.Unmarshal([]byte(fenced(t, page, "yaml", "script:")), &jobs); err != nil {
		t.Fatal(err)
	}
	gitlab := jobs["compress"]
	if gitlab.Artifacts.When != "always" || len(gitlab.Artifacts.Paths) != 1 || len(gitlab.Script) < 2 {
		t.Errorf("got %+v", gitlab)
	}
	_, shell, _ := strings.Cut(fenced(t, page, "groovy", "pipeline"), "sh '''\n")
	shell, _, _ = strings.Cut(shell, "'''")
	venv := filepath.Join(t.TempDir(), "venv") // that of GitLab's image; the job for Jenkins makes its own
	if out, err := exec.Command(python(t), "-m", "venv", venv).CombinedOutput(); err != nil {
		missing(t, "python -m venv: "+string(out))
	}
	for name, job := range map[string][2]string{
		"GitLab": {strings.Join(gitlab.Script, "\n"), filepath.Join(venv, "bin")}, "Jenkins": {shell, filepath.Dir(python(t))},
	} {
		t.Run(name, func(t *testing.T) { runJob(t, job[0], job[1]) })
	}
}

// runJob runs a script with the programs of a folder before those of the PATH.
func runJob(t *testing.T, script, bin string) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "models", "model.onnx"), read(t, filepath.Join("..", "fixtures", "mlp.onnx")), 0o644)
	c := exec.Command("bash", "-e", "-c", strings.ReplaceAll(script, "==0.1.0", "=="+version{"1.2.3", "rc", "1"}.pep440()))
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "PIP_NO_INDEX=1", "PIP_FIND_LINKS="+dist)
	output(t, c)
	reports, err := filepath.Glob(filepath.Join(dir, "compressed", "*.report.json"))
	if err != nil || len(reports) != 1 {
		t.Errorf("%d reports, %v", len(reports), err)
	}
}
