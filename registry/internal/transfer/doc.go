// Package transfer has what the clients of registries share, without the types of package registry: the count of bytes,
// connections that are given up when they stall, and the rules of HTTP, TLS and repetition.
package transfer
