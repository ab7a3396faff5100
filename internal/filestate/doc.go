// Package filestate tells whether a file is the one that it was, without reading it. It must not depend on other packages
// of this module.
package filestate
