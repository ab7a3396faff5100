package job

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"
)

const module = "github.com/mcompress/mcompress"

// baseVersion is the version of builds that record neither a module version nor a revision, such as those of go run.
const baseVersion = "v0.1.0-devel"

// release is the version of a release build, set by
// -ldflags "-X github.com/mcompress/mcompress/internal/job.release=v1.2.3".
var release string

// Version is the version of this module for reports: that of the release, else the module version that the go
// command recorded, else a development version with the VCS revision.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(release, baseVersion)
	}
	return cmp.Or(release, moduleVersion(info), revision(info), baseVersion)
}

// moduleVersion is empty for a build that has none, which the go command calls (devel).
func moduleVersion(info *debug.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == module && m.Version != "(devel)" {
			return m.Version
		}
	}
	return ""
}

// revision is the development version of a checkout, empty unless the build recorded its commit and this module is
// the main one.
func revision(info *debug.BuildInfo) string {
	if info.Main.Path != module {
		return ""
	}
	setting := func(key string) string {
		i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == key })
		if i < 0 {
			return ""
		}
		return info.Settings[i].Value
	}
	commit := setting("vcs.revision")
	if commit == "" {
		return ""
	}
	// The setting vcs.modified is true, false or absent.
	version := baseVersion + "+" + commit[:min(12, len(commit))]
	return version + strings.TrimSuffix(strings.Replace(setting("vcs.modified"), "true", ".dirty", 1), "false")
}
