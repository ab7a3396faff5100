// Package oci adds OCI registries to the library: where it is imported, references oci://HOST/REPOSITORY:TAG are
// accepted.
//
//	import _ "github.com/mcompress/mcompress/registry/oci"
//
// Credentials are those of Docker's configuration. The program mcompress imports it; without it, a program does not
// link the client of OCI registries.
package oci
