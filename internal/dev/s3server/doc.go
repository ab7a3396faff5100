// Package s3server pins the S3 server of the tests, VersityGW, which make .s3/versitygw builds. It is a module of its
// own, so that this one does not depend on it.
package s3server
