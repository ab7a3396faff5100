package job

import (
	"runtime/debug"
	"testing"
)

func TestVersionOfABuild(t *testing.T) {
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"},
		{Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		name             string
		info             debug.BuildInfo
		module, revision string
	}{
		{"installed", debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3"}}, "v1.2.3", ""},
		{"go run", debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}, "", ""},
		{"checkout", debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}, Settings: settings}, "",
			baseVersion + "+0123456789ab.dirty"},
		{"library", debug.BuildInfo{Main: debug.Module{Path: "example.com/a"},
			Deps: []*debug.Module{{Path: module, Version: "v1.2.3"}}, Settings: settings}, "v1.2.3", ""},
		{"replaced", debug.BuildInfo{Main: debug.Module{Path: "example.com/a"},
			Deps: []*debug.Module{{Path: module, Version: "(devel)"}}, Settings: settings}, "", ""},
	} {
		if got := moduleVersion(&c.info); got != c.module {
			t.Errorf("%s: module version %q, want %q", c.name, got, c.module)
		}
		if got := revision(&c.info); got != c.revision {
			t.Errorf("%s: revision %q, want %q", c.name, got, c.revision)
		}
	}
}

func TestVersionNamesMoreThanDevel(t *testing.T) {
	if got := Version(); got == "" || got == "(devel)" {
		t.Errorf("version %q", got)
	}
}
