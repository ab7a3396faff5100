// Package untrusted decides which text from elsewhere may become a part of a path: names of files in registries,
// containers and configuration, and digests. It must not depend on other packages of this module.
package untrusted
