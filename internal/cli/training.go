package cli

import (
	"fmt"

	"github.com/mcompress/mcompress/pass"
)

// TrainingRate is the loss and the speed of a training for its progress bar.
func TrainingRate(p pass.Progress) string {
	return fmt.Sprintf("  loss %.4g  %s a step  %s samples/s", p.Loss, seconds(p.StepTime().Seconds()), rate(p.SamplesPerSecond()))
}
