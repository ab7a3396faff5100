// Command packaging makes the files of a release: archives, Python wheels, npm packages, a container image, SBOMs, a Homebrew formula and their
// checksums. .ci/release runs it. The same sources, version, SOURCE_DATE_EPOCH and version of Go make the same bytes.
//
// It is a module of its own, so that its dependencies are not those of mcompress, and imports no package of mcompress.
package main
