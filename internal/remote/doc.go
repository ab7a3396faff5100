// Package remote reads files of object storage and web servers by ranged requests, as if they were on disk:
// s3://BUCKET/KEY by the S3 API, and https:// URLs. An object that changes while it is read is an error. It writes the
// files of a result by multipart uploads that are completed together, the model last. A Mirror has the files of several
// processes that divide a run.
//
// It must not depend on what the files contain, except that models are opened with the data files next to them.
package remote
