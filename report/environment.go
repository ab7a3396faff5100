package report

import (
	"encoding/json"
	"io"
	"runtime"
	"time"
)

// An Environment is what differs between two runs of the same work. Values that the system does not provide are absent.
type Environment struct {
	WallSeconds  float64 `json:"wall_seconds"`
	PeakResident int64   `json:"peak_resident_bytes,omitempty"` // of the whole process
	CPU          string  `json:"cpu,omitempty"`
	LogicalCPUs  int     `json:"logical_cpus"`
	Workers      int     `json:"workers"`
	OS           string  `json:"os"`
	Arch         string  `json:"arch"`
	Go           string  `json:"go"`
	StartedAt    string  `json:"started_at"` // RFC 3339, UTC
}

// Observe starts the clock. The function it returns gives the environment of the time
// from then on.
func Observe(workers int) func() *Environment {
	start := time.Now()
	return func() *Environment {
		return &Environment{
			WallSeconds:  round(time.Since(start).Seconds(), 3),
			PeakResident: peakResident(),
			CPU:          cpu(),
			LogicalCPUs:  runtime.NumCPU(),
			Workers:      workers,
			OS:           runtime.GOOS,
			Arch:         runtime.GOARCH,
			Go:           runtime.Version(),
			StartedAt:    start.UTC().Format(time.RFC3339),
		}
	}
}

// JSON writes e with two spaces of indentation.
func (e *Environment) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(e)
}
