package mcompress

import "github.com/mcompress/mcompress/internal/job"

// Version is the version of this module, as reports carry it.
func Version() string { return job.Version() }
