package report

import (
	"encoding/json"
	"io"
	"runtime"
	"time"

	"github.com/mcompress/mcompress/pass"
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

	Training []TrainingTime `json:"training,omitempty"` // of each training step of the pipeline
}

// A TrainingTime is the wall time of a training in seconds. The time of steps is that of waiting and computing.
type TrainingTime struct {
	Method           string  `json:"method"`
	Steps            int     `json:"steps"`   // of this run: after the checkpoint of a resumed training
	Samples          int     `json:"samples"` // of these steps
	Seconds          float64 `json:"step_seconds"`
	SamplesPerSecond float64 `json:"samples_per_second"`
	Wait             float64 `json:"wait_seconds"` // for samples
	Compute          float64 `json:"compute_seconds"`
	Evaluate         float64 `json:"evaluate_seconds"`
	Save             float64 `json:"save_seconds"` // of checkpoints
	// worker threads: fewer than those of the program where a memory budget does not suffice for all
	Workers int     `json:"workers"`
	Loading Loading `json:"loading"`
}

// A Loading is the speed of data loading for training steps.
type Loading struct {
	Samples          int64   `json:"samples"`            // that were loaded
	SamplesPerSecond float64 `json:"samples_per_second"` // if loading never waits for a step
	// read from files, decompressed; if loading never waits for a step
	BytesPerSecond float64 `json:"bytes_per_second"`
	Read           float64 `json:"read_seconds"`
	Decode         float64 `json:"decode_seconds"`  // with conversion, the sum of all loaders
	Augment        float64 `json:"augment_seconds"` // the sum of all loaders
	Wait           float64 `json:"wait_seconds"`    // for steps
	Loaders        int     `json:"loaders"`

	Bottleneck pass.Bottleneck `json:"bottleneck"` // of training: steps, reading, loaders
}

// TimeOf returns the times of a training that ended.
func TimeOf(p pass.Progress) TrainingTime {
	return TrainingTime{
		Method: p.Method, Steps: p.Ran, Samples: p.Samples,
		Seconds: round(p.StepTime().Seconds(), 6), SamplesPerSecond: round(p.SamplesPerSecond(), 1),
		Wait: round(p.Wait.Seconds(), 3), Compute: round(p.Compute.Seconds(), 3),
		Evaluate: round(p.Evaluate.Seconds(), 3), Save: round(p.Save.Seconds(), 3),
		Workers: p.Workers, Loading: loadingOf(p),
	}
}

func loadingOf(p pass.Progress) Loading {
	l := p.Loading
	return Loading{
		Samples: l.Samples, SamplesPerSecond: round(l.SamplesPerSecond(), 1), BytesPerSecond: round(l.BytesPerSecond(), 0),
		Loaders: l.Loaders, Read: round(l.Read.Seconds(), 6), Decode: round(l.Decode.Seconds(), 6),
		Augment: round(l.Augment.Seconds(), 6), Wait: round(l.Idle.Seconds(), 3),
		Bottleneck: p.Bottleneck(),
	}
}

// Observe starts the clock. The function it returns gives the environment of the time
// from then on.
func Observe(workers int) func() *Environment {
	start := time.Now()
	return func() *Environment {
		_, peak := Resident()
		return &Environment{
			WallSeconds:  round(time.Since(start).Seconds(), 3),
			PeakResident: peak,
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
