package remote

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/retry"
)

// retry repeats a step while its error is transient.
func (s *settings) retry(ctx context.Context, step func() error) error {
	err := retry.Do(ctx, s.pause, transient, step)
	if err != nil && ctx.Err() == nil && transient(err) {
		return fmt.Errorf("%d attempts failed, the last one with %w", retry.Attempts, err)
	}
	return err
}
