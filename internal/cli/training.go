package cli

import (
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// TrainingRate is the loss and the speed of a training for its progress bar.
func TrainingRate(p pass.Progress) string {
	return fmt.Sprintf("  loss %.4g  %s a step  %s samples/s", p.Loss, seconds(p.StepTime().Seconds()), rate(p.SamplesPerSecond()))
}

// trainingTime is the speed of a training that ended. resident is the peak of the process, 0 if it is not known.
func trainingTime(t report.TrainingTime, resident int64) string {
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
	if resident > 0 {
		parts = append(parts, "resident "+size(resident))
	}
	return strings.Join(parts, " · ")
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
