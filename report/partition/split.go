package partition

import "github.com/mcompress/mcompress/report/verification"

// A Split is the files of a model for several devices: stages, which have a Plan and a Chain, or shards.
type Split struct {
	Plan     *Plan          `json:"plan,omitempty"`
	Manifest string         `json:"manifest"` // path of the manifest
	Chain    *Manifest      `json:"chain,omitempty"`
	Shards   *ShardManifest `json:"shards,omitempty"`
	Run      *Run           `json:"run,omitempty"`
}

// A Run is a run of stages or shards on several devices.
type Run struct {
	Mode         string               `json:"mode"` // sequential or piped
	Devices      []Device             `json:"processes"`
	Verification *verification.Result `json:"verification"` // against the whole model
}

// A Device is the work of a stage or rank. Seconds are those of its runs, without waiting and exchange.
type Device struct {
	Name    string  `json:"name"` // the file of a stage, or the rank
	Runs    int     `json:"runs"`
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"exchanged_bytes"`     // with its process; 0 in this process
	Peak    int64   `json:"peak_resident_bytes"` // of its process
}
