package tune

import (
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/job"
)

// mostSeen is how many samples methods look at by themselves, and leastShared how many there must be for some to be kept from them.
const (
	mostSeen    = 128
	leastShared = 16
)

// shown are how many samples candidates look at while they are tried, a fourth of all at most, and which: what was fitted to samples
// says too much good of them. Methods look at samples that are evenly spread.
func shown(set *dataset.Set, d job.Data) (calibrate int, seen map[int]bool) {
	n := set.Len()
	if d.Generated() || n < leastShared || set.Size(1) > 1 {
		return 0, nil
	}
	calibrate = min(mostSeen, n/4)
	seen = map[int]bool{}
	for i := range calibrate {
		seen[i*n/calibrate] = true
	}
	return calibrate, seen
}
