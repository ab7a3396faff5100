package cli

import (
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// TrainingRate is the loss and the speed of a training for its progress bar.
func TrainingRate(p pass.Progress) string {
	return fmt.Sprintf("  loss %.4g  %s a step  %s samples/s, loaders %s samples/s %s, %s waiting", p.Loss, seconds(p.StepTime().Seconds()),
		rate(p.SamplesPerSecond()), rate(p.Loading.SamplesPerSecond()), byteRate(p.Loading.BytesPerSecond()), percent(p.WaitFraction()))
}

// byteRate is a throughput in MB of 10^6 bytes per second.
func byteRate(bytes float64) string { return fmt.Sprintf("%.3g MB/s", bytes/1e6) }

// trainingTime is the speed of a training that ended.
func trainingTime(t report.TrainingTime, e *report.Environment) string {
	parts := []string{
		fmt.Sprintf("trained %d steps in %s", t.Steps, seconds(t.Wait+t.Compute)),
		seconds(t.Seconds) + " a step", rate(t.SamplesPerSecond) + " samples/s",
	}
	if all := t.Wait + t.Compute; all > 0 {
		parts = append(parts, percent(t.Wait/all)+" waiting for samples")
	}
	if t.Evaluate > 0 {
		parts = append(parts, "evaluations "+seconds(t.Evaluate))
	}
	if e.PeakResident > 0 {
		parts = append(parts, "resident "+size(e.PeakResident))
	}
	if t.Workers < e.Workers {
		parts = append(parts, fmt.Sprintf("%d of %d worker threads, within the memory budget", t.Workers, e.Workers))
	}
	return strings.Join(parts, " · ")
}

// budgeted is the planned memory of the process, its budget, and its measured peak. e may be nil.
func budgeted(m pass.TrainingMemory, e *report.Environment) string {
	text := "planned " + size(m.Total()) + " of the process"
	if m.Budget > 0 {
		text += ", budget " + size(m.Budget)
	}
	if e != nil && e.PeakResident > 0 {
		text += ", peak resident " + size(e.PeakResident)
	}
	return text
}

// loadingTime is the speed of data loading of a training that ended, the times of waiting, and the bottleneck.
func loadingTime(t report.TrainingTime) []string {
	l := t.Loading
	if l.Samples == 0 {
		return nil
	}
	speed := fmt.Sprintf("%s samples/s · %s · read %s", rate(l.SamplesPerSecond), byteRate(l.BytesPerSecond), seconds(l.Read))
	speed += ", decode and convert " + seconds(l.Decode)
	if l.Augment > 0 {
		speed += ", augment " + seconds(l.Augment)
	}
	speed += fmt.Sprintf(" (loaders: %d)", l.Loaders)
	waited := fmt.Sprintf("steps waited %s for samples · loaders waited %s for steps · ", seconds(t.Wait), seconds(l.Wait))
	return []string{speed, waited + bottleneck(l)}
}

// bottleneck is a sentence about what limits the speed of training, and what makes it faster.
func bottleneck(l report.Loading) string {
	switch l.Bottleneck {
	case pass.Reading:
		return "reading is the bottleneck: uncompressed or local data is read faster"
	case pass.Loaders:
		return "the loaders are the bottleneck: increase --loaders and --prefetch, or store smaller images"
	}
	return "steps are the bottleneck: faster loading does not help"
}

// planned lists the planned memory of a training by kind.
func planned(sizes []pass.Size) string {
	var parts []string
	for _, s := range sizes {
		if s.Bytes > 0 {
			parts = append(parts, s.Name+" "+size(s.Bytes))
		}
	}
	return strings.Join(parts, " · ")
}
