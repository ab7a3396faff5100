package tune

import (
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/job"
)

// maxCalibration is the default number of calibration samples of methods; leastShared is the minimum number of samples
// for a separate calibration set.
const (
	maxCalibration = 128
	leastShared    = 16
)

// calibrationSamples is the number of calibration samples of candidates, at most a quarter of all, and their indices:
// they are excluded from evaluation, which would be biased on them. Methods calibrate on evenly spaced samples.
func calibrationSamples(set *dataset.Set, d job.Data) (calibrate int, seen map[int]bool) {
	n := set.Len()
	// Random samples are as many as needed, few samples none to spare, and a batch of a fixed size is evaluated as a
	// whole.
	if d.Generated() || n < leastShared || set.Size(1) > 1 {
		return 0, nil
	}
	calibrate = min(maxCalibration, n/4)
	seen = map[int]bool{}
	for i := range calibrate {
		seen[i*n/calibrate] = true
	}
	return calibrate, seen
}
